import Primitives

/// One SCTP association over DTLS (RFC 8261): packets and time in; packets, messages and the next deadline out.
///
/// Composes the parts; each of them holds its own state.
/// ```text
/// packets ─► PacketReader ─┬─► Handshake                      ┌─ Handshake replies ◄─┐
///                          ├─► ReceiveHalf ─► messages        ├─ SACK                │
///                          ├─► SendHalf (SACK)                ├─ RE-CONFIG           ├─ write ─► packets
///                          └─► StreamReset                    └─ SendHalf            ┘
/// ```
struct SCTPAssociation {
    enum Event: Equatable {
        case established
        /// The peer has begun a new association: all channels of the old one are closed.
        case restarted
        /// The peer closed its direction of these streams; an empty list means all.
        case resetByPeer([UInt16])
        /// This side's direction of these streams is closed and may be used again.
        case resetCompleted([UInt16])
        case ended(SCTPEnd)
    }

    /// RFC 9260 section 3.3.10.
    private enum Cause { static let userAbort: UInt16 = 12, protocolViolation: UInt16 = 13 }
    /// Maximum replies that wait for `write`. A peer provokes one per packet; further ones are lost, as on any network.
    private static let mostReplies = 8
    /// Maximum SACK and RE-CONFIG chunks of a packet that are processed: each may cause a search of everything that waits, and dozens fit. Peers bundle at most
    /// three, a SACK with an answer and a request.
    private static let mostReports = 4
    /// A HEARTBEAT is answered with its own content.
    private static let longestHeartbeat = PacketSize.largest - PacketSize.header - PacketSize.chunkHeader
    /// Streams that this side announces: browsers give ids up to 65,534, and an announced stream costs nothing.
    private static let streams = UInt16.max

    private let settings: DataChannelSettings
    private let port: UInt16, remotePort: UInt16
    private var handshake: Handshake
    private var receiving: ReceiveHalf?
    private var sending: SendHalf?
    private var resets: StreamReset?
    private var replies: [Handshake.Reply] = []
    private var events: [Event] = []
    private(set) var hasEnded = false

    init(settings: DataChannelSettings, remotePort: UInt16, random: RandomSource) {
        self.settings = settings
        self.remotePort = remotePort
        port = DataChannelSettings.port
        handshake = Handshake(window: UInt32(settings.window), streams: Self.streams, random: random)
    }

    var isEstablished: Bool { handshake.isEstablished && !hasEnded }

    /// When to call `advance`.
    var nextDeadline: MonotonicTime {
        guard !hasEnded else { return .distantFuture }
        var deadline = handshake.nextDeadline
        if let receiving { deadline = min(deadline, receiving.nextDeadline) }
        if let sending { deadline = min(deadline, sending.nextDeadline) }
        if let resets { deadline = min(deadline, resets.nextDeadline) }
        return deadline
    }

    /// DTLS is up.
    mutating func start(at now: MonotonicTime) { handshake.start(at: now) }

    /// Runs timers that are due.
    mutating func advance(to now: MonotonicTime) {
        guard !hasEnded else { return }
        if let reply = handshake.advance(to: now) { replies.append(reply) }
        sending?.advance(to: now)
    }

    /// Removes and returns the events since the last call.
    mutating func consumeEvents() -> [Event] {
        guard !events.isEmpty else { return [] }
        defer { events = [] }
        return events
    }

    // MARK: - Messages

    /// The oldest whole message, which stays in the receive window until it is taken.
    var firstMessage: ReceivedMessage? { receiving?.firstMessage }
    /// The oldest whole message for which `isMeant` holds, and how many are before it; each is examined once, until `searchAgain`.
    mutating func firstMessage(where isMeant: (ReceivedMessage) -> Bool) -> (message: ReceivedMessage, index: Int)? {
        receiving?.firstMessage(where: isMeant)
    }
    /// `isMeant` may give other answers from now on.
    mutating func searchAgain() { receiving?.searchAgain() }
    mutating func dequeueMessage(at index: Int = 0) -> ReceivedMessage? { receiving?.dequeueMessage(at: index) }

    /// Queues a message; false when it is reliable and its queue is full, or when there is no association.
    mutating func send(
        _ payload: [UInt8], stream: UInt16, identifier: UInt32, isOrdered: Bool, reliability: DataReliability,
        at now: MonotonicTime
    ) -> Bool {
        sending?.append(
            payload, stream: stream, identifier: identifier, isOrdered: isOrdered, reliability: reliability, at: now)
            ?? false
    }

    /// Whether another message of DCEP may be queued.
    var takesControl: Bool { sending?.takesControl ?? false }

    /// Queues a message of DCEP before all others.
    mutating func sendControl(_ payload: [UInt8], stream: UInt16, identifier: UInt32, at now: MonotonicTime) {
        sending?.appendControl(payload, stream: stream, identifier: identifier, at: now)
    }

    /// Closes this side's direction of a stream after the messages that wait on it are sent, or without these if it `discards` them.
    mutating func close(_ stream: UInt16, discards: Bool) {
        if discards { sending?.clear(stream) }
        resets?.close(stream)
    }

    /// The peer has opened the stream again, after both directions were closed.
    mutating func reopen(_ stream: UInt16) {
        if resets?.forget(stream) == true { sending?.reset(stream) }
    }

    /// Ends the association at once (RFC 9260 section 9.1).
    mutating func abort() { abort(Cause.userAbort, .closed) }

    private mutating func abort(_ cause: UInt16, _ end: SCTPEnd) {
        guard !hasEnded else { return }
        var value: [UInt8] = []
        value.append(parameter: cause, [])
        replies = handshake.peer.map { [Handshake.Reply(type: .abort, value: value, tag: $0.tag)] } ?? []
        self.end(end)
    }

    private mutating func end(_ reason: SCTPEnd) {
        guard !hasEnded else { return }
        hasEnded = true
        events.append(.ended(reason))
        (receiving, sending, resets) = (nil, nil, nil)
    }

    // MARK: - Reports

    /// Reliable bytes that wait or are unacknowledged, and messages that wait.
    var waiting: (reliableBytes: Int, messages: Int) { sending?.waiting ?? (0, 0) }
    /// Reliable bytes that the peer has acknowledged.
    var deliveredBytes: Int { sending?.deliveredBytes ?? 0 }
    /// Bytes that wait or are in flight.
    var bufferedBytes: Int { sending?.bufferedBytes ?? 0 }
    /// Lossy messages that did not reach the peer.
    var droppedMessages: Int { sending?.dropped ?? 0 }

    // MARK: - Receiving

    /// Processes one packet; false when it does not belong to this association.
    mutating func receive(_ bytes: UnsafeRawBufferPointer, at now: MonotonicTime) -> Bool {
        guard !hasEnded, var packet = PacketReader(bytes), packet.destinationPort == port,
            packet.sourcePort == remotePort, isIntact(packet)
        else { return false }
        if packet.firstType == .initiation {
            // INIT must be alone, under tag zero (RFC 9260 sections 6.10 and 8.5.1).
            guard packet.tag == 0, let chunk = packet.next(), packet.isAtEnd else { return false }
            process(handshake.receiveInitiation(chunk.value, at: now))
            return true
        }
        guard handshake.accepts(tag: packet.tag, first: packet.firstType) || isReflected(packet) else { return false }
        var data = (any: false, immediately: false), reports = 0
        while !hasEnded, let chunk = packet.next() {
            guard let kind = chunk.kind else {
                // The two highest bits of an unknown type decide whether the rest is read (section 3.2). It is not reported: no sender uses the report.
                if chunk.type & 0x80 == 0 { break }
                continue
            }
            if kind == .sack || kind == .reconfiguration {
                reports += 1
                guard reports <= Self.mostReports else { continue }
            }
            process(chunk, kind, under: packet.tag, at: now, &data)
        }
        if data.any { receiving?.notePacket(at: now, immediately: data.immediately) }
        return true
    }

    /// Every association announces that it accepts packets without checksum, but not those that set it up (RFC 9653 section 5.3).
    private func isIntact(_ packet: PacketReader) -> Bool {
        packet.isChecked
            || packet.hasNoChecksum && packet.firstType != .initiation && packet.firstType != .cookieEcho
    }

    /// ABORT and SHUTDOWN COMPLETE of a peer without state carry our own tag's counterpart (section 8.5.1, T bit).
    private func isReflected(_ packet: PacketReader) -> Bool {
        (packet.firstType == .abort || packet.firstType == .shutdownComplete) && packet.tag == handshake.peer?.tag
    }

    private mutating func process(
        _ chunk: PacketReader.Chunk, _ kind: ChunkType, under tag: UInt32, at now: MonotonicTime,
        _ data: inout (any: Bool, immediately: Bool)
    ) {
        switch kind {
        case .data: receiveData(chunk, &data)
        case .sack:
            guard let report = Acknowledgement(chunk.value) else { break }
            if sending?.receive(report, at: now) == false { abort(Cause.protocolViolation, .protocolViolation) }
        case .initiationAck: process(handshake.receiveInitiationAck(chunk.value, at: now))
        case .cookieEcho: process(handshake.receiveCookieEcho(chunk.value, tag: tag))
        case .cookieAck: process(handshake.receiveCookieAck())
        case .heartbeat:
            guard chunk.value.count <= Self.longestHeartbeat else { break }
            reply(.heartbeatAck, Array(chunk.value))
        case .forwardTSN: receiving?.receiveForwardTSN(chunk.value)
        case .reconfiguration: receiveReconfiguration(chunk.value, at: now)
        case .abort, .shutdownComplete: end(.closedByPeer)
        case .shutdown:
            reply(.shutdownAck, [])
            end(.closedByPeer)
        case .shutdownAck, .heartbeatAck, .error, .initiation: break
        }
    }

    private mutating func receiveData(
        _ chunk: PacketReader.Chunk, _ data: inout (any: Bool, immediately: Bool)
    ) {
        guard receiving != nil else { return }
        guard let content = DataChunk(chunk) else { return abort(Cause.protocolViolation, .protocolViolation) }
        data.any = true
        if content.wantsAcknowledgement { data.immediately = true }
        switch receiving?.receive(content) {
        case .violation: abort(Cause.protocolViolation, .protocolViolation)
        case .duplicate, .refused: data.immediately = true
        case .accepted, nil: break
        }
    }

    private mutating func receiveReconfiguration(_ value: UnsafeRawBufferPointer, at now: MonotonicTime) {
        guard let receiving,
            let outcome = resets?.receive(
                value, cumulative: receiving.cumulative, at: now, holds: { receiving.holdsMessages(of: $0) })
        else { return }
        if !outcome.answer.isEmpty { reply(.reconfiguration, outcome.answer) }
        if let streams = outcome.peerReset {
            self.receiving?.reset(streams)
            events.append(.resetByPeer(streams))
        }
        guard !outcome.completed.isEmpty else { return }
        for stream in outcome.completed { sending?.reset(stream) }
        events.append(.resetCompleted(outcome.completed))
    }

    private mutating func process(_ outcome: Handshake.Outcome) {
        switch outcome {
        case .nothing: break
        case .reply(let reply): append(reply)
        case .established(let local, let peer, let reply):
            let isRestart = receiving != nil
            receiving = ReceiveHalf(
                firstTSN: peer.firstTSN, windowSize: settings.window, longestMessage: settings.longestMessage)
            sending = SendHalf(
                firstTSN: local.firstTSN, peerWindow: peer.window, mayAbandon: peer.hasForwardTSN,
                queue: SendQueue(limits: settings.queueLimits))
            resets = StreamReset(firstTSN: local.firstTSN, peerFirstTSN: peer.firstTSN)
            events.append(isRestart ? .restarted : .established)
            if let reply { append(reply) }
        }
    }

    private mutating func reply(_ type: ChunkType, _ value: [UInt8]) {
        guard let peer = handshake.peer else { return }
        append(Handshake.Reply(type: type, value: value, tag: peer.tag))
    }

    private mutating func append(_ reply: Handshake.Reply) {
        if replies.count < Self.mostReplies { replies.append(reply) }
    }

    // MARK: - Writing

    /// Whether `write` has something to write; data only where it is allowed.
    func hasPacket(at now: MonotonicTime, allowsData: Bool) -> Bool {
        if !replies.isEmpty { return true }
        guard let receiving, let sending, let resets else { return false }
        return receiving.isReportDue(at: now) || allowsData && sending.isReady
            || !resets.isIdle && resets.isDue(at: now, isDrained: sending.isDrained)
    }

    /// Writes the next packet and returns its length; 0 when there is none. `buffer` has room for `PacketSize.largest`.
    mutating func write(into buffer: UnsafeMutableRawBufferPointer, at now: MonotonicTime, allowsData: Bool) -> Int {
        if !replies.isEmpty { return write(replies.removeFirst(), into: buffer) }
        guard hasPacket(at: now, allowsData: allowsData), let peer = handshake.peer else { return 0 }
        var packet = PacketWriter(buffer, from: port, to: remotePort, tag: peer.tag)
        let sendsData = allowsData && sending?.isReady ?? false
        if let half = receiving, half.isReportDue(at: now) || half.hasNews && sendsData {
            _ = receiving?.writeReport(into: &packet)
        }
        if let sending, resets?.isIdle == false {
            resets?.write(
                into: &packet, last: sending.last, timeout: sending.timeout, at: now, isDrained: sending.isDrained)
        }
        if sendsData { sending?.write(into: &packet, at: now) }
        return packet.isEmpty ? 0 : packet.finish(withChecksum: !peer.acceptsNoChecksum)
    }

    /// Each side decides independently whether it omits the checksum; packets that set up the association have one (RFC 9653 section 5.2).
    private func write(_ reply: Handshake.Reply, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var packet = PacketWriter(buffer, from: port, to: remotePort, tag: reply.tag)
        guard packet.chunk(reply.type, flags: reply.flags, reply.value) else { return 0 }
        let needsChecksum = [.initiation, .initiationAck, .cookieEcho].contains(reply.type)
        return packet.finish(withChecksum: needsChecksum || !(handshake.peer?.acceptsNoChecksum ?? false))
    }
}
