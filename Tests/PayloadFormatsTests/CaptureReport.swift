import PayloadFormats
import Primitives
import RTP
import TestSupport

/// Reads a whole capture and says what is in it, as text that a person can check.
struct CaptureReport {
    private var streams: [UInt32: StreamReport] = [:]
    private var order: [UInt32] = []
    private var control: [String: Int] = [:]
    private let facts: OfferFacts
    private(set) var problems: [String] = []

    init(_ name: String) throws {
        facts = OfferFacts(try ClientCaptures.offer(name))
        for (index, packet) in try ClientCaptures.load(name).enumerated() {
            let read = packet.isRTCP ? readControl(packet.bytes) : readMedia(packet.bytes)
            if !read { problems.append("\(name) packet \(index + 1)") }
        }
    }

    /// The report.
    var text: String {
        var lines: [String] = []
        for (index, ssrc) in order.enumerated() {
            lines += streams[ssrc]!.lines(number: index + 1)
        }
        lines.append("rtcp")
        lines += control.sorted { $0.key < $1.key }.map { "  \($0.key): \($0.value)" }
        return lines.joined(separator: "\n") + "\n"
    }

    private mutating func readMedia(_ bytes: [UInt8]) -> Bool {
        let packet = bytes.span.bytes
        guard let header = RTPHeader(packet), let codec = facts.codecs[header.payloadType] else { return false }
        if streams[header.ssrc] == nil {
            order.append(header.ssrc)
            streams[header.ssrc] = StreamReport(
                payloadType: header.payloadType, codec: codec,
                repeated: facts.repeated[header.payloadType].flatMap { facts.codecs[$0] })
        }
        let names = facts.extensions[facts.kinds[header.payloadType] ?? ""] ?? [:]
        return streams[header.ssrc]!.read(header, packet, names)
    }

    private mutating func readControl(_ bytes: [UInt8]) -> Bool {
        let datagram = bytes.span.bytes
        guard var compound = RTCPCompound(datagram) else { return false }
        while let packet = compound.next(in: datagram) {
            for word in Self.words(packet, datagram) { control[word, default: 0] += 1 }
        }
        return !compound.isMalformed
    }

    private static func words(_ packet: RTCPPacket, _ datagram: RawSpan) -> [String] {
        switch packet {
        case .senderReport(let report): return ["sender report with \(report.blocks.count) blocks"]
        case .receiverReport(let report): return ["receiver report with \(report.blocks.count) blocks"]
        case .sourceDescription(var description):
            var words: [String] = []
            while let item = description.next(in: datagram) { words.append("sdes item type \(item.type)") }
            return words
        case .goodbye(let goodbye): return ["bye of \(goodbye.count)"]
        case .nack: return ["nack"]
        case .transportFeedback(let feedback):
            return [feedback.makeReader(in: datagram) == nil ? "transport feedback, broken" : "transport feedback"]
        case .pictureLoss: return ["picture loss"]
        case .fullIntraRequest: return ["full intra request"]
        case .maximumBitrate: return ["maximum bitrate"]
        case .receiverReferenceTime: return ["xr receiver reference time"]
        case .delaySinceLastReceiverReport: return ["xr delay since last receiver report"]
        case .application: return ["app"]
        case .unknown(let unknown): return ["unknown type \(unknown.type) count \(unknown.count)"]
        }
    }
}
