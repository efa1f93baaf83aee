internal import DTLS
internal import DataChannels
public import MediaControl
public import Primitives

// Data channels: SCTP packets are application data of the DTLS association (RFC 8261).

/// The outcome of `WebRTCTransport.writeData`.
public enum DataWritten: Sendable, Hashable {
    /// There is nothing more to write now.
    case done
    /// There is more: as many packets as allowed were written.
    case limited
    /// The batch is full.
    case full
}

/// The outcome of `WebRTCTransport.sendData`.
public enum DataSent: Sendable, Hashable {
    case queued
    /// The peer has no open channel with this label, or no data channels at all.
    case noChannel
    /// The message is longer than the peer's description allows.
    case tooLong
    /// The peer accepts reliable messages too slowly: its channel is being closed.
    case tooSlow
}

extension WebRTCTransport {
    /// The peer's data section is accepted. A peer has one association: false when it has it already.
    public func acceptData(_ transport: DataTransport, at now: MonotonicTime) -> Bool {
        guard !isOver, data == nil else { return false }
        let session = DataChannelSession(
            settings: DataChannelSettings(context.settings.data), remotePort: transport.port,
            longestRemoteMessage: transport.longestMessage, isDTLSClient: remote?.localRole == .client,
            random: RandomSource(seed: context.random.next()))
        data = session
        if isConnected { session.start(at: now) }
        hasNearerDeadline = true
        return true
    }

    /// Opens a channel from this side; false when there is no data section, or a channel with this label.
    public func openDataChannel(_ terms: DataChannelTerms, at now: MonotonicTime) -> Bool {
        data?.open(terms, at: now) ?? false
    }

    /// Closes the channel with this label after the messages that wait on it.
    public func closeDataChannel(_ label: String) {
        data?.close(label)
        collectDataEvents()
    }

    /// Queues a message on the channel with this label.
    public func sendData(_ payload: DataPayload, on label: String, at now: MonotonicTime) -> DataSent {
        guard let data else { return .noChannel }
        switch data.send(payload, on: label, at: now) {
        case .queued: return .queued
        case .noChannel: return .noChannel
        case .tooLong: return .tooLong
        case .tooSlow:
            collectDataEvents()
            return .tooSlow
        }
    }

    // MARK: - Back-pressure

    /// Messages of this cost from the peer count as held by the control plane once more.
    public func holdData(_ cost: Int) { data?.hold(cost) }

    /// The control plane has finished with messages of this cost: others may leave the peer's window.
    public func releaseData(_ cost: Int, at now: MonotonicTime) {
        data?.release(cost, at: now)
        collectDataEvents()
    }

    /// Whether so many reliable messages wait for the peer that their senders should pause.
    public var isDataCongested: Bool { data?.isCongested ?? false }
    /// Whether senders that have waited may continue.
    public var isDataRelieved: Bool { data?.isRelieved ?? true }
    /// Reliable bytes that the peer has acknowledged.
    public var deliveredDataBytes: Int { data?.deliveredBytes ?? 0 }

    /// The peer accepts reliable messages too slowly: its channels for them are being closed.
    public func closeSlowDataChannels() {
        data?.closeSlowChannels()
        collectDataEvents()
    }

    /// Messages on lossy channels that did not reach the peer.
    public var droppedMessages: Int { data?.droppedMessages ?? 0 }
    /// Messages from the peer that were ignored: no open channel, or an unknown payload protocol identifier.
    public var ignoredMessages: Int { data?.ignoredMessages ?? 0 }

    /// Passes on the packets in the datagram that DTLS received last; returns the reason if one was dropped.
    func receiveData(at now: MonotonicTime) -> DropReason? {
        let count = context.dtls.applicationData.count
        guard count > 0 else { return nil }
        defer { context.dtls.applicationData.removeAll() }
        guard let data else { return .dataUnexpected }
        var reason: DropReason?
        for index in 0..<count where !data.receive(context.dtls.applicationData.packet(index), at: now) {
            reason = .dataMalformed
        }
        collectDataEvents()
        return reason
    }

    /// Runs the timers of the data channels.
    func advanceData(to now: MonotonicTime) {
        guard let data, isConnected, data.nextDeadline <= now else { return }
        data.advance(to: now)
        collectDataEvents()
    }

    private func collectDataEvents() {
        guard let data, data.hasEvents else { return }
        for event in data.consumeEvents() {
            switch event {
            case .opened(let terms): events.append(.dataChannelOpened(terms))
            case .closed(let label, let reason): events.append(.dataChannelClosed(label: label, reason))
            case .message(let label, let payload): events.append(.dataReceived(label: label, payload))
            case .ended: break
            }
        }
    }

    /// Whether the data channels have something to send, once messages may be sent.
    public func hasDataToSend(at now: MonotonicTime) -> Bool { data?.hasPacket(at: now, allowsData: true) ?? false }

    /// Writes what the data channels have to send, at most `limit` packets, those with messages only where `allowsMessages`.
    public func writeData(
        limit: Int, allowsMessages: Bool, at now: MonotonicTime, into output: inout OutboundBatch
    ) -> DataWritten {
        guard let data, let dtls, let destination = media.pointee.destination else { return .done }
        var written = 0
        while data.hasPacket(at: now, allowsData: allowsMessages) {
            guard written < limit else { return .limited }
            guard output.hasRoom(for: DataChannelSession.largestPacket + DTLSAssociation.recordOverhead) else {
                return .full
            }
            let length = data.write(into: context.packet, at: now, allowsData: allowsMessages)
            guard length > 0 else { break }
            let packet = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(context.packet)[..<length])
            // A packet that DTLS does not send counts as lost: SCTP repeats it.
            _ = dtls.send(packet, to: destination, into: &output)
            written += 1
        }
        return .done
    }
}

extension DataChannelSettings {
    fileprivate init(_ limits: DataLimits) {
        self.init()
        longestMessage = limits.longestMessage
        reliableBytes = limits.reliableBytes
        lossyBytes = limits.lossyBytes
        congestedBytes = min(limits.congestedBytes, limits.reliableBytes / 2)
        bytesInHand = limits.bytesInHand
        messagesPerSecond = limits.messagesPerSecond
        bytesPerSecond = limits.bytesPerSecond
        // A burst of one second, and a message of the largest size, must pass.
        messagesAtOnce = limits.messagesPerSecond
        bytesAtOnce = max(limits.bytesPerSecond, limits.longestMessage) * 2
    }
}
