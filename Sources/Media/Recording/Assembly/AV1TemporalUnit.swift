import MP4
import Movies
import PayloadFormats
import Primitives

/// An AV1 temporal unit that is being assembled: whole OBUs with sizes, without the sender's temporal delimiters and padding (AV1 in ISO base
/// media files, section 2.4).
struct AV1TemporalUnit {
    private(set) var bytes: [UInt8] = []
    /// By the latest sequence header.
    private var hasSpatialLayers = false
    /// An OBU that continues in the next packet.
    private var open: [UInt8]?
    private var sequenceHeader: [UInt8]?
    private var isBroken = false

    /// Temporal delimiter, tile list, padding.
    private static let leftOut: Set<UInt8> = [2, 8, 15]
    /// An OBU of type 2 without content. A file should omit it (section 2.4), but with a scalable stream dav1d, the decoder of Chromium and ffmpeg, shows a
    /// unit that lacks its highest spatial layer only when a delimiter follows: without it, 25 of 121 frames were shown (measured).
    private static let temporalDelimiter: [UInt8] = [0x12, 0]

    /// Processes a packet's payload; false when it is malformed.
    mutating func append(_ payload: RawSpan) -> Bool {
        guard var elements = AV1.Elements(payload) else { return false }
        while let element = elements.next(in: payload) {
            let part = payload.extracting(element.start..<(element.offset + element.length)).withUnsafeBytes {
                Array($0)
            }
            if element.type == nil {
                guard open != nil else { return fail() }
                open?.append(contentsOf: part)
            } else {
                guard open == nil else { return fail() }
                open = part
            }
            guard !element.continues else { continue }
            guard let whole = open, store(whole) else { return fail() }
            open = nil
        }
        return elements.isMalformed ? fail() : true
    }

    private mutating func fail() -> Bool {
        isBroken = true
        return false
    }

    /// Stores an OBU with its size; false when it is malformed.
    private mutating func store(_ obu: [UInt8]) -> Bool {
        guard let unit = OBU(obu) else { return false }
        guard !Self.leftOut.contains(unit.type) else { return true }
        let stored = unit.withSize
        if unit.type == AV1.sequenceHeader { sequenceHeader = stored }
        bytes.append(contentsOf: stored)
        return true
    }

    /// The unit is complete: its bytes and, for one that a decoder can start with, the format. nil when there is nothing to store.
    mutating func finish() -> (bytes: [UInt8], entry: SampleEntry?)? {
        defer { beginNext() }
        guard !isBroken, open == nil, !bytes.isEmpty else { return nil }
        let parameters = sequenceHeader.flatMap { AV1.SequenceParameters(obu: $0.span.bytes) }
        if let parameters { hasSpatialLayers = parameters.hasSpatialLayers }
        let sample = hasSpatialLayers ? Self.temporalDelimiter + bytes : bytes
        guard let sequenceHeader else { return (sample, nil) }
        guard let parameters else { return nil }
        return (
            sample,
            .av1(
                profile: parameters.profile, level: parameters.level, isHighTier: parameters.isHighTier,
                sequenceHeader: sequenceHeader,
                VideoSize(width: parameters.dimensions.width, height: parameters.dimensions.height))
        )
    }

    mutating func beginNext() {
        bytes.removeAll(keepingCapacity: true)
        (open, sequenceHeader, isBroken) = (nil, nil, false)
    }
}

/// One OBU: header, extension and content (AV1 section 5.3).
private struct OBU {
    let type: UInt8
    private let header: UInt8
    private let layers: UInt8?
    private let content: ArraySlice<UInt8>

    init?(_ bytes: [UInt8]) {
        guard let first = bytes.first, first & 0x80 == 0 else { return nil }
        header = first
        type = first >> 3 & 0x0f
        var offset = 1
        if first & 4 != 0 {
            guard bytes.count > 1 else { return nil }
            layers = bytes[1]
            offset = 2
        } else {
            layers = nil
        }
        var end = bytes.count
        if first & 2 != 0 {
            guard let size = LEB128.read(bytes.span.bytes, &offset, end: bytes.count), Int(size) <= end - offset
            else { return nil }
            end = offset + Int(size)
        }
        content = bytes[offset..<end]
    }

    /// With obu_has_size_field set.
    var withSize: [UInt8] {
        [header | 2] + (layers.map { [$0] } ?? []) + LEB128.bytes(UInt32(clamping: content.count)) + content
    }
}
