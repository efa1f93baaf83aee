public import Primitives

/// The data channels of one peer: SCTP (RFC 9260) and DCEP (RFC 8832) over its DTLS association.
///
/// Sans-IO, not Sendable: packets and time in; packets, events and the next deadline out.
public final class DataChannelSession {
    /// Room that `write` needs, in bytes.
    public static let largestPacket = PacketSize.largest

    /// The outcome of sending a message.
    public enum Sent: Sendable, Hashable {
        /// It waits or is on its way; an older lossy one may have been dropped for it.
        case queued
        /// There is no open channel with this label.
        case noChannel
        /// It is longer than the peer's description allows.
        case tooLong
        /// The receiver accepts reliable messages too slowly: its channel is being closed.
        case tooSlow
    }

    /// Events, in order.
    public enum Event: Sendable, Hashable {
        /// A channel may be used: opened by the peer, or by this side and confirmed by the peer.
        case opened(DataChannelTerms)
        /// A channel is closed.
        case closed(label: String, DataChannelEnd)
        /// A message arrived on the channel with this label.
        case message(label: String, DataPayload)
        /// The last event: the association ended, and with it all channels.
        case ended(SCTPEnd)
    }

    /// How long a message stays in the receive window before it is tried again when the peer sends more than it may.
    private static let holdTime = TimeSpan.milliseconds(20)

    private let settings: DataChannelSettings
    private let longestRemoteMessage: Int
    private var association: SCTPAssociation
    private var channels: ChannelTable
    private var waitingToOpen: [DataChannelTerms] = []
    private var events: [Event] = []
    private var messageLimit = RateLimit(), byteLimit = RateLimit()
    private var heldUntil = MonotonicTime.distantFuture
    /// Cost of the messages that the application has not released.
    private var costInHand = 0
    /// Messages that were ignored: no channel, or an unknown payload protocol identifier.
    public private(set) var ignoredMessages = 0

    /// `longestRemoteMessage`: the peer's `a=max-message-size` in bytes; `isDTLSClient`: this side's role; `random` gives tags and first numbers.
    public init(
        settings: DataChannelSettings, remotePort: UInt16, longestRemoteMessage: Int, isDTLSClient: Bool,
        random: RandomSource
    ) {
        self.settings = settings
        self.longestRemoteMessage = longestRemoteMessage
        association = SCTPAssociation(settings: settings, remotePort: remotePort, random: random)
        channels = ChannelTable(limit: settings.channels, isDTLSClient: isDTLSClient)
    }

    /// DTLS is up: the peer's INIT is expected from now on.
    public func start(at now: MonotonicTime) { association.start(at: now) }

    /// When to call `advance`; `write` may have something to write before that.
    public var nextDeadline: MonotonicTime { min(association.nextDeadline, heldUntil) }
    /// Whether the association is up.
    public var isEstablished: Bool { association.isEstablished }
    /// Whether it has ended; what remains to be written is the ABORT.
    public var hasEnded: Bool { association.hasEnded }

    /// Processes one SCTP packet; false when it does not belong to the association.
    public func receive(_ packet: UnsafeRawBufferPointer, at now: MonotonicTime) -> Bool {
        guard association.receive(packet, at: now) else { return false }
        processAssociation(at: now)
        return true
    }

    /// Runs timers that are due.
    public func advance(to now: MonotonicTime) {
        association.advance(to: now)
        processAssociation(at: now)
    }

    /// Whether there is an event.
    public var hasEvents: Bool { !events.isEmpty }

    /// Removes and returns the events since the last call.
    public func consumeEvents() -> [Event] {
        guard !events.isEmpty else { return [] }
        defer { events = [] }
        return events
    }

    /// Whether `write` has a packet; one with messages only where `allowsData`.
    public func hasPacket(at now: MonotonicTime, allowsData: Bool) -> Bool {
        association.hasPacket(at: now, allowsData: allowsData)
    }

    /// Writes the next packet into `buffer` (`largestPacket` bytes or more) and returns its length; 0 when there is none.
    public func write(into buffer: UnsafeMutableRawBufferPointer, at now: MonotonicTime, allowsData: Bool) -> Int {
        association.write(into: buffer, at: now, allowsData: allowsData)
    }

    // MARK: - Channels

    /// Opens a channel, or does so once the association is up. False when there are too many, or one with this label exists.
    public func open(_ terms: DataChannelTerms, at now: MonotonicTime) -> Bool {
        guard channels.channel(labelled: terms.label) == nil,
            terms.label.utf8.count <= DataChannelTerms.longestName,
            terms.subprotocol.utf8.count <= DataChannelTerms.longestName, !hasEnded
        else { return false }
        guard isEstablished else {
            guard waitingToOpen.count < settings.channels else { return false }
            waitingToOpen.append(terms)
            return true
        }
        guard association.takesControl, let stream = channels.open(terms) else { return false }
        lookForLossy(terms)
        association.sendControl(
            DCEPMessage.open(terms).bytes, stream: stream, identifier: PayloadIdentifier.control, at: now)
        return true
    }

    /// Sends a message on the channel with this label.
    public func send(_ payload: DataPayload, on label: String, at now: MonotonicTime) -> Sent {
        guard let channel = channels.channel(labelled: label) else { return .noChannel }
        guard payload.bytes.count <= longestRemoteMessage else { return .tooLong }
        let (identifier, bytes) = PayloadIdentifier.encode(payload)
        // A peer drops what overtakes its channel's OPEN (RFC 8832 section 6).
        let isOrdered = channel.terms.isOrdered || channel.state == .opening
        guard
            association.send(
                bytes, stream: channel.stream, identifier: identifier, isOrdered: isOrdered,
                reliability: channel.terms.reliability, at: now)
        else {
            close(channel, .receiverTooSlow, discards: true)
            return .tooSlow
        }
        return .queued
    }

    /// Closes the channel with this label, after the messages that wait on it.
    public func close(_ label: String) {
        waitingToOpen.removeAll { $0.label == label }
        if let channel = channels.channel(labelled: label) { close(channel, .closed, discards: false) }
    }

    /// Ends all channels with an ABORT, which `write` still has to write. (After a SHUTDOWN Chromium's channels would stay open and dead.)
    public func abort(at now: MonotonicTime) {
        association.abort()
        processAssociation(at: now)
    }

    private func close(_ channel: ChannelTable.Channel, _ reason: DataChannelEnd, discards: Bool) {
        guard channel.state != .closing else { return }
        channels.set(.closing, on: channel.stream)
        association.close(channel.stream, discards: discards)
        events.append(.closed(label: channel.terms.label, reason))
    }

    // MARK: - Back-pressure

    /// The application needs more time: messages of this cost count as held by it once more.
    public func hold(_ cost: Int) { costInHand += cost }

    /// The application has finished with messages of this cost; others may leave the receive window.
    public func release(_ cost: Int, at now: MonotonicTime) {
        costInHand = max(0, costInHand - cost)
        deliver(at: now)
    }

    /// Whether so many reliable messages wait for the peer that their senders should pause.
    public var isCongested: Bool { waits(for: 1) }
    /// Whether senders that have waited may continue.
    public var isRelieved: Bool { !waits(for: 2) }

    private func waits(for part: Int) -> Bool {
        let waiting = association.waiting
        return waiting.reliableBytes > settings.congestedBytes / part
            || waiting.messages > settings.waitingMessages / 4 / part
    }

    /// Closes the reliable channels of a peer that accepts their messages too slowly; the messages that wait for it are dropped.
    public func closeSlowChannels() {
        for stream in channels.streams {
            if let channel = channels.channel(on: stream), channel.terms.reliability == .reliable {
                close(channel, .receiverTooSlow, discards: true)
            }
        }
    }

    // MARK: - Reports

    /// Reliable bytes that the peer has acknowledged.
    public var deliveredBytes: Int { association.deliveredBytes }
    /// Bytes that wait or are in flight.
    public var bufferedBytes: Int { association.bufferedBytes }
    /// Lossy messages that did not reach the peer.
    public var droppedMessages: Int { association.droppedMessages }

    // MARK: - What the association reports

    private func processAssociation(at now: MonotonicTime) {
        for event in association.consumeEvents() {
            switch event {
            case .established:
                for terms in waitingToOpen { _ = open(terms, at: now) }
                waitingToOpen = []
            case .restarted: closeAll(.associationEnded)
            case .resetByPeer(let streams): closedByPeer(streams.isEmpty ? channels.streams : streams)
            case .resetCompleted(let streams): for stream in streams { channels.remove(stream) }
            case .ended(let reason):
                closeAll(.associationEnded)
                events.append(.ended(reason))
            }
        }
        deliver(at: now)
    }

    private func closeAll(_ reason: DataChannelEnd) {
        for label in channels.removeAll() { events.append(.closed(label: label, reason)) }
    }

    private func closedByPeer(_ streams: [UInt16]) {
        for stream in streams {
            if let channel = channels.channel(on: stream) { close(channel, .closedByPeer, discards: true) }
        }
    }

    /// Delivers messages from the receive window as fast as the peer may send and the application accepts them.
    private func deliver(at now: MonotonicTime) {
        heldUntil = .distantFuture
        while let message = association.firstMessage {
            guard costInHand < settings.bytesInHand || message.identifier == PayloadIdentifier.control else {
                return overtake(at: now)
            }
            guard isWithinLimits(message, at: now) else {
                heldUntil = now + Self.holdTime
                return overtake(at: now)
            }
            _ = association.dequeueMessage()
            receive(message, at: now)
        }
    }

    /// Lossy messages overtake held ones: they are worth little when they are late, and their order among reliable ones is not guaranteed. They wait only while
    /// the application holds twice as much as reliable ones may fill, and as the rate demands.
    private func overtake(at now: MonotonicTime) {
        guard channels.hasLossy else { return }
        while costInHand / 2 < settings.bytesInHand, let (message, index) = association.firstMessage(where: isLossy) {
            guard isWithinLimits(message, at: now) else {
                heldUntil = now + Self.holdTime
                return
            }
            _ = association.dequeueMessage(at: index)
            receive(message, at: now)
        }
    }

    private func isLossy(_ message: ReceivedMessage) -> Bool {
        message.identifier != PayloadIdentifier.control && channels.isLossy(message.stream)
    }

    /// A channel was added: messages on it may have arrived before.
    private func lookForLossy(_ terms: DataChannelTerms) {
        if terms.reliability != .reliable { association.searchAgain() }
    }

    private func isWithinLimits(_ message: ReceivedMessage, at now: MonotonicTime) -> Bool {
        var messages = messageLimit, bytes = byteLimit
        let second: Int64 = 1_000_000_000
        guard
            messages.accept(
                every: .nanoseconds(second / Int64(settings.messagesPerSecond)), atOnce: settings.messagesAtOnce,
                at: now),
            bytes.accept(
                message.payload.count, every: .nanoseconds(second / Int64(settings.bytesPerSecond)),
                atOnce: settings.bytesAtOnce, at: now)
        else { return false }
        (messageLimit, byteLimit) = (messages, bytes)
        return true
    }

    private func receive(_ message: ReceivedMessage, at now: MonotonicTime) {
        guard message.identifier != PayloadIdentifier.control else {
            return receiveControl(message, at: now)
        }
        guard let channel = channels.channel(on: message.stream), channel.state != .closing,
            let payload = PayloadIdentifier.payload(message)
        else {
            ignoredMessages += 1
            return
        }
        confirm(channel)
        costInHand += payload.cost
        events.append(.message(label: channel.terms.label, payload))
    }

    private func receiveControl(_ message: ReceivedMessage, at now: MonotonicTime) {
        switch DCEPMessage(message.payload) {
        case .open(let terms):
            let existing = channels.channel(on: message.stream)
            guard existing == nil || existing?.state == .closing else { return ignoredMessages += 1 }
            guard association.takesControl, existing != nil || !channels.isFull else {
                return association.close(message.stream, discards: true)
            }
            if existing != nil { association.reopen(message.stream) }
            channels.add(terms, on: message.stream)
            lookForLossy(terms)
            association.sendControl(
                DCEPMessage.acknowledgement.bytes, stream: message.stream, identifier: PayloadIdentifier.control,
                at: now)
            events.append(.opened(terms))
        case .acknowledgement:
            if let channel = channels.channel(on: message.stream) { confirm(channel) }
        case nil: ignoredMessages += 1
        }
    }

    /// The peer uses a channel of this side: it has processed the OPEN.
    private func confirm(_ channel: ChannelTable.Channel) {
        guard channel.state == .opening else { return }
        channels.set(.open, on: channel.stream)
        events.append(.opened(channel.terms))
    }
}
