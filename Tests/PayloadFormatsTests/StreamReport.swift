import PayloadFormats
import Primitives
import RTP

/// What one SSRC of a capture carried.
struct StreamReport {
    let payloadType: UInt8
    let codec: String
    private var packets = 0
    private var padding = 0
    private var highest: Int64 = 0
    private var lowest = Int64.max
    private var unwrapper = SequenceUnwrapper()
    private var names: [String] = []
    private var extensions: [String: Int] = [:]
    private var reader = DependencyDescriptorReader()
    private var counts: [String: Int] = [:]
    private var layers: [String: Int] = [:]
    private var sizes: [String] = []
    private var pictures: Set<UInt32> = []

    /// The codec that an RTX stream repeats.
    private let repeated: String?

    init(payloadType: UInt8, codec: String, repeated: String?) {
        self.payloadType = payloadType
        self.codec = codec
        self.repeated = repeated
    }

    private static let codecs: [String: PayloadCodec] = [
        "vp8": .vp8, "vp9": .vp9, "h264": .h264, "av1": .av1, "opus": .opus, "red": .red,
    ]

    /// Takes one packet; false when it does not parse to what its payload type says.
    mutating func read(_ header: RTPHeader, _ packet: RawSpan, _ extensionNames: [UInt8: String]) -> Bool {
        packets += 1
        let sequence = unwrapper.unwrap(header.sequenceNumber)
        lowest = min(lowest, sequence)
        highest = max(highest, sequence)
        guard let found = readExtensions(header, packet, extensionNames) else { return false }
        if header.payloadLength == 0 {
            padding += 1
            return true
        }
        if let repeated { return readRepetition(of: repeated, header, packet) }
        guard let kind = Self.codecs[codec] else { return false }
        let payload = packet.extracting(header.payloadOffset..<(header.payloadOffset + header.payloadLength))
        guard let summary = kind.summary(of: payload, marker: header.marker, descriptor: found.value) else {
            return false
        }
        pictures.insert(header.timestamp)
        add(summary, kind)
        return true
    }

    /// A retransmission holds a packet of the repeated codec behind two bytes.
    private mutating func readRepetition(of codec: String, _ header: RTPHeader, _ packet: RawSpan) -> Bool {
        guard let kind = Self.codecs[codec], RTX.originalSequenceNumber(header, in: packet) != nil else { return false }
        count("repeated packets", true)
        let start = header.payloadOffset + RTX.overhead
        let payload = packet.extracting(start..<(header.payloadOffset + header.payloadLength))
        guard let summary = kind.summary(of: payload, marker: header.marker) else { return false }
        count("repeated keyframe starts", summary.startsKeyframe)
        return true
    }

    private struct Found { var value: DependencyDescriptor? }

    private mutating func readExtensions(
        _ header: RTPHeader, _ packet: RawSpan, _ extensionNames: [UInt8: String]
    ) -> Found? {
        var found = Found()
        if header.isTwoByteExtension { extensions["(two-byte form)", default: 0] += 1 }
        var elements = RTPHeaderExtensions(header)
        while let element = elements.next(in: packet) {
            guard let name = extensionNames[element.id] else { return nil }
            extensions[name, default: 0] += 1
            switch name {
            case "rtp-stream-id", "repaired-rtp-stream-id", "mid":
                let word = "\(name) \(element.text(in: packet))"
                if !names.contains(word) { names.append(word) }
            case "video-layers-allocation00":
                guard let allocation = VideoLayersAllocation(element, in: packet) else { return nil }
                let sizes = (0..<allocation.layerCount).map {
                    "\(allocation.layers[$0].width)x\(allocation.layers[$0].height)"
                }
                count("allocations of \(sizes.joined(separator: " ")) in \(allocation.streamCount) streams", true)
            // Those of repeated packets are read with the structure of the repeated stream.
            case "dependency-descriptor-rtp-header-extension" where repeated == nil:
                let value = packet.extracting(element.offset..<(element.offset + element.length))
                guard let descriptor = reader.read(value) else { return nil }
                found.value = descriptor
                count("descriptors with structure", descriptor.hasStructure)
            default: break
            }
        }
        return found
    }

    private mutating func add(_ summary: PayloadSummary, _ kind: PayloadCodec) {
        guard kind.isVideo else {
            layers["samples \(summary.sampleCount)", default: 0] += 1
            return
        }
        count("frames started", summary.startsFrame)
        count("frames ended", summary.endsFrame)
        count("pictures ended", summary.endsPicture)
        count("keyframe packets", summary.isKeyframe)
        count("keyframes started", summary.startsKeyframe)
        count("parameter sets", summary.containsParameterSets)
        count("switching points", summary.isSwitchingPoint && summary.startsFrame)
        count("spatial layers started", summary.startsSpatialLayer && summary.startsFrame)
        count("discardable", summary.isDiscardable)
        count("picture ids", summary.pictureIDOffset != 0)
        count("tl0 indices", summary.tl0Offset != 0)
        count("flexible", summary.isFlexible)
        if summary.startsFrame {
            layers["frames S\(summary.spatialLayer) T\(summary.temporalLayer)", default: 0] += 1
        }
        if let size = summary.dimensions, sizes.last != "\(size.width)x\(size.height)" {
            sizes.append("\(size.width)x\(size.height)")
        }
    }

    private mutating func count(_ word: String, _ condition: Bool) {
        if condition { counts[word, default: 0] += 1 }
    }

    func lines(number: Int) -> [String] {
        let missing = Int(highest - lowest + 1) - packets
        var lines = ["stream \(number): \(codec) (\(payloadType))\(names.map { ", " + $0 }.joined())"]
        lines.append("  packets \(packets), padding only \(padding), not seen \(missing), pictures \(pictures.count)")
        lines += counts.sorted { $0.key < $1.key }.map { "  \($0.key): \($0.value)" }
        lines += layers.sorted { $0.key < $1.key }.map { "  \($0.key): \($0.value)" }
        if !sizes.isEmpty { lines.append("  sizes: \(sizes.joined(separator: " "))") }
        lines += extensions.sorted { $0.key < $1.key }.map { "  extension \($0.key): \($0.value)" }
        return lines
    }
}
