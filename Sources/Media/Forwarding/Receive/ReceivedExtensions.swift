internal import MediaControl
internal import Primitives
internal import RTP

/// id -> meaning of the header extensions of one peer, one load per element.
///
/// Bundled m-sections use one id for one extension (RFC 8843 section 9.2: the bundle shares the mapping), so the
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

/// The result of one walk over a packet's header extensions.
struct ReceivedExtensions {
    struct Range {
        var offset = 0
        var length = 0

        init() {}
        init(_ element: RTPHeaderExtensions.Element) {
            offset = element.offset
            length = element.length
        }
    }

    /// Extensions to forward.
    var forwarded = ExtensionLocations()
    var mid = Range()
    var rid = Range()
    var repairedRID = Range()
    var dependencyDescriptor = Range()
    var layersAllocation = Range()
    /// Transport-wide sequence number, or -1.
    var transportSequence: Int32 = -1
    /// RFC 6464 level, or 255.
    var audioLevel: UInt8 = 255
    var voiceActivity = false
    /// The meanings that were found, a bit each.
    private var found: UInt32 = 0

    /// Of several elements with one meaning the first counts for every reader of the packet: otherwise, in a hostile packet, one element could be read and
    /// another rewritten.
    @inline(__always) mutating func note(
        _ meaning: HeaderExtension, _ element: RTPHeaderExtensions.Element, in packet: RawSpan
    ) {
        let bit = UInt32(1) &<< UInt32(meaning.rawValue)
        guard found & bit == 0 else { return }
        found |= bit
        switch meaning {
        case .mid: mid = Range(element)
        case .rid: rid = Range(element)
        case .repairedRID: repairedRID = Range(element)
        case .absoluteSendTime: break
        case .transportSequence:
            guard let value = TransportSequenceNumber(element, in: packet) else { return }
            transportSequence = Int32(value.value)
        case .audioLevel:
            guard let value = AudioLevel(element, in: packet) else { return }
            audioLevel = value.level
            voiceActivity = value.isVoice
            forward(meaning, element)
        case .dependencyDescriptor:
            dependencyDescriptor = Range(element)
            forward(meaning, element)
        case .videoLayersAllocation:
            layersAllocation = Range(element)
            forward(meaning, element)
        case .videoOrientation, .playoutDelay, .videoContentType, .videoTiming, .colorSpace, .transmissionOffset,
            .absoluteCaptureTime:
            forward(meaning, element)
        }
    }

    @inline(__always) private mutating func forward(_ meaning: HeaderExtension, _ element: RTPHeaderExtensions.Element)
    {
        forwarded.append(
            ExtensionLocation(
                meaning: meaning, length: UInt8(truncatingIfNeeded: element.length),
                offset: UInt16(truncatingIfNeeded: element.offset)))
    }
}
