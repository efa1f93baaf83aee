/// One way for hostile bytes into the house: libFuzzer runs it (`make fuzz`), and so does the replay test (`make test`).
struct FuzzTarget: Sendable {
    /// What the command line and the folder of kept inputs call it.
    let name: String
    /// Makes what takes one input after another; it traps where a promise does not hold. The same input gives the same
    /// result, except where OpenSSL rolls dice.
    let start: @Sendable () throws -> (UnsafeRawBufferPointer) -> Void
    /// Inputs to begin with: what real clients sent.
    let seeds: @Sendable () throws -> [[UInt8]]

    init(
        _ name: String, start: @escaping @Sendable () throws -> (UnsafeRawBufferPointer) -> Void,
        seeds: @escaping @Sendable () throws -> [[UInt8]]
    ) {
        self.name = name
        self.start = start
        self.seeds = seeds
    }

    /// A target without state from one input to the next.
    init(
        _ name: String, _ run: @escaping @Sendable (UnsafeRawBufferPointer) -> Void,
        seeds: @escaping @Sendable () throws -> [[UInt8]]
    ) {
        self.init(name, start: { run }, seeds: seeds)
    }

    /// Every target. One line adds one.
    static let all: [FuzzTarget] = [
        FuzzTarget("RTP", fuzzRTP, seeds: Seeds.rtp),
        FuzzTarget("RTCP", fuzzRTCP, seeds: Seeds.rtcp),
        FuzzTarget("Stream", fuzzStream, seeds: Seeds.streams),
        FuzzTarget("Extensions", fuzzExtensions, seeds: Seeds.extensions),
        FuzzTarget("Payload", fuzzPayload, seeds: Seeds.payloads),
        FuzzTarget("Recording", fuzzRecording, seeds: Seeds.recordings),
        FuzzTarget("Playback", fuzzPlayback, seeds: Seeds.movies),
        FuzzTarget("Matroska", fuzzMatroska, seeds: Seeds.matroska),
        FuzzTarget("DependencyDescriptor", fuzzDependencyDescriptor, seeds: Seeds.dependencyDescriptors),
        FuzzTarget("SDP", fuzzSDP, seeds: Seeds.descriptions),
        FuzzTarget("Negotiation", fuzzNegotiation, seeds: Seeds.negotiations),
        FuzzTarget("Trickle", fuzzTrickle, seeds: Seeds.trickle),
        FuzzTarget("ICE", start: ICETarget.start, seeds: Seeds.stun),
        FuzzTarget("DTLS", start: DTLSTarget.start, seeds: Seeds.handshakes),
        FuzzTarget("SRTP", start: SRTPTarget.start, seeds: Seeds.protected),
        FuzzTarget("Transport", start: TransportTarget.start, seeds: Seeds.transport),
        FuzzTarget("DataChannels", DataChannelsTarget.run, seeds: DataChannelsTarget.seeds),
        FuzzTarget("Estimator", fuzzEstimator, seeds: Seeds.histories),
        FuzzTarget("SendPath", fuzzSendPath, seeds: Seeds.answers),
        FuzzTarget("Engine", start: EngineTarget.start, seeds: Seeds.engine),
        FuzzTarget("Signalling", fuzzSignalling, seeds: Seeds.signalling),
        FuzzTarget("LiveKit", fuzzLiveKit, seeds: Seeds.liveKit),
        FuzzTarget("Bodies", fuzzBodies, seeds: Seeds.bodies),
        FuzzTarget("Token", start: TokenTarget.start, seeds: Seeds.tokens),
        FuzzTarget("Request", fuzzRequest, seeds: Seeds.requests),
        FuzzTarget("Connection", fuzzConnection, seeds: Seeds.connections),
        FuzzTarget("WebSocket", fuzzWebSocket, seeds: Seeds.frames),
    ]
}

/// Takes an input apart: single bytes, and records behind two bytes of length.
struct FuzzInput {
    private(set) var rest: Slice<UnsafeRawBufferPointer>

    init(_ bytes: UnsafeRawBufferPointer) { rest = bytes[...] }

    var isEmpty: Bool { rest.isEmpty }

    /// The next byte; 0 at the end.
    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    /// The next record, of at most 16,383 bytes and never more than there is.
    mutating func record() -> UnsafeRawBufferPointer {
        let wanted = (Int(byte()) << 8 | Int(byte())) & 0x3fff
        let part = rest.prefix(wanted)
        rest = rest.dropFirst(part.count)
        return UnsafeRawBufferPointer(rebasing: part)
    }

    /// The next record as text.
    mutating func text() -> String { String(decoding: record(), as: UTF8.self) }

    /// A record as this reads it.
    static func record(_ bytes: some Collection<UInt8>) -> [UInt8] {
        let part = bytes.prefix(0x3fff)
        return [UInt8(part.count >> 8), UInt8(part.count & 0xff)] + part
    }
}

extension UnsafeRawBufferPointer {
    /// Calls `body` with a copy that may be changed.
    func withCopy(room: Int = 0, _ body: (UnsafeMutableRawBufferPointer) -> Void) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: count + room, alignment: 16)
        defer { copy.deallocate() }
        copy.copyMemory(from: self)
        body(copy)
    }
}
