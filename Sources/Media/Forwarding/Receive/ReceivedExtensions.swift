internal import MediaControl
internal import Primitives

/// id -> meaning of the header extensions of one peer, one load an element.
///
/// Bundled m-sections use one id for one extension (RFC 8843 section 9.2... the mapping is shared by the bundle), so the
/// union of all sections is the peer's table; it is needed before the packet's section is known.
struct ExtensionTable: ~Copyable {
    /// `HeaderExtension.rawValue + 1`, 0 for unknown.
    private let meanings: UnsafeMutablePointer<UInt8>

    init() {
        meanings = .allocate(capacity: 256)
        meanings.initialize(repeating: 0, count: 256)
    }

    deinit { meanings.deallocate() }

    /// Adds the ids of one section.
    func add(_ ids: HeaderExtensionIDs) {
        for meaning in HeaderExtension.allCases where ids[meaning] != 0 {
            meanings[Int(ids[meaning])] = meaning.rawValue + 1
        }
    }

    func removeAll() { meanings.update(repeating: 0, count: 256) }

    @inline(__always) subscript(id: UInt8) -> HeaderExtension? {
        let value = meanings[Int(id)]
        return value == 0 ? nil : HeaderExtension(rawValue: value &- 1)
    }
}

/// What one walk over a packet's header extensions found.
struct ReceivedExtensions {
    struct Range {
        var offset = 0
        var length = 0
    }

    /// Those that are passed on.
    var forwarded = ExtensionLocations()
    var mid = Range()
    var rid = Range()
    var repairedRID = Range()
    var dependencyDescriptor = Range()
    /// Transport-wide sequence number, or -1.
    var transportSequence: Int32 = -1
    /// RFC 6464 level, or 255.
    var audioLevel: UInt8 = 255
    var voiceActivity = false

    @inline(__always) mutating func note(
        _ meaning: HeaderExtension, offset: Int, length: Int, in packet: UnsafeRawBufferPointer
    ) {
        switch meaning {
        case .mid: mid = Range(offset: offset, length: length)
        case .rid: rid = Range(offset: offset, length: length)
        case .repairedRID: repairedRID = Range(offset: offset, length: length)
        case .absoluteSendTime: break
        case .transportSequence:
            guard length >= 2 else { return }
            transportSequence = Int32(packet[offset]) << 8 | Int32(packet[offset + 1])
        case .audioLevel:
            guard length >= 1 else { return }
            audioLevel = packet[offset] & 0x7f
            voiceActivity = packet[offset] & 0x80 != 0
            forward(meaning, offset, length)
        case .dependencyDescriptor:
            dependencyDescriptor = Range(offset: offset, length: length)
            forward(meaning, offset, length)
        case .videoOrientation, .playoutDelay, .videoContentType, .videoTiming, .colorSpace, .transmissionOffset,
            .absoluteCaptureTime, .videoLayersAllocation:
            forward(meaning, offset, length)
        }
    }

    @inline(__always) private mutating func forward(_ meaning: HeaderExtension, _ offset: Int, _ length: Int) {
        forwarded.append(
            ExtensionLocation(
                meaning: meaning, length: UInt8(truncatingIfNeeded: length), offset: UInt16(truncatingIfNeeded: offset))
        )
    }
}
