import MediaControl
import PeerTransport
import Primitives

// Messages on data channels: the control plane decides who receives them; here they are queued, and written after audio and video.

extension WorkerEngine {
    /// Packets with messages to one peer per turn: 37 kB, so that a queue of the largest size needs 30 turns, in which media goes first.
    private static let dataPacketsPerTurn = 32
    /// About as many bytes as one of their packets takes of an allowance.
    private static let packetLength = 1_200
    /// When a peer that has more to send is served again.
    private static let dataPause = TimeSpan.milliseconds(1)

    func applyToData(_ command: MediaCommand, at now: MonotonicTime) -> Bool {
        switch command {
        case .acceptData(let id, let transport):
            guard let index = tables.peerIndex[id.rawValue] else { return false }
            tables.peers[index].pointee.hasData = true
            _ = tables.peers[index].pointee.transport.acceptData(transport, at: now)
            touch(index)
        case .openDataChannel(let id, let terms):
            guard let index = tables.peerIndex[id.rawValue] else { return false }
            touch(index)
            return tables.peers[index].pointee.transport.openDataChannel(terms, at: now)
        case .closeDataChannel(let id, let label):
            guard let index = tables.peerIndex[id.rawValue] else { return false }
            tables.peers[index].pointee.transport.closeDataChannel(label)
            handleTransportEvents(of: index, at: now)
        case .sendData(let delivery): send(delivery, at: now)
        case .releaseData(let id, let cost): release(cost, of: id, at: now)
        default: return false
        }
        return true
    }

    private func send(_ delivery: DataDelivery, at now: MonotonicTime) {
        for receiver in delivery.receivers {
            guard let index = tables.peerIndex[receiver.peer.rawValue] else {
                counters.data.undeliverable &+= 1
                continue
            }
            switch tables.peers[index].pointee.transport.sendData(delivery.payload, on: receiver.label, at: now) {
            case .queued:
                counters.data.sent &+= 1
                touch(index)
                if let source = delivery.source { addDebt(source, delivery.payload.cost, to: index, at: now) }
            case .noChannel, .tooLong: counters.data.undeliverable &+= 1
            case .tooSlow:
                counters.data.channelsClosedAsSlow &+= 1
                handleTransportEvents(of: index, at: now)
            }
        }
    }

    /// Writes what the peer's data channels have to send; messages wait while audio or video waits. False when the batch is full.
    func writeData(of index: Int, at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        let peer = tables.peers[index]
        guard peer.pointee.hasData else { return true }
        let (downlink, allowance) = messagePath(of: index, at: now)
        let mark = batch.mark
        let result = peer.pointee.transport.writeData(
            limit: min(Self.dataPacketsPerTurn, max(allowance / Self.packetLength, 1)),
            allowsMessages: allowance > 0, at: now, into: &batch)
        let bytes = batch.used - mark.used
        counters.data.bytesSent &+= UInt64(bytes)
        countLosses(of: peer)
        peer.pointee.isTransportTouched = true
        // While messages wait, only acknowledgements and the like leave.
        let resumesAt = downlink?.pointee.sentData(
            bytes, counted: allowance == .max ? nil : allowance > 0 ? bytes : 0,
            moreWait: peer.pointee.transport.hasDataToSend(at: now), at: now)
        peer.pointee.dataResumesAt = resumesAt ?? (result == .limited ? now + Self.dataPause : .distantFuture)
        settleDebts(of: index, at: now)
        return result != .full
    }

    /// The downlink that knows the path of a peer's messages (its own, or that of another peer of the participant), and the bytes that may leave now next to
    /// its media.
    private func messagePath(of index: Int, at now: MonotonicTime) -> (UnsafeMutablePointer<Downlink>?, Int) {
        let own = tables.peers[index].pointee.downlink
        if let allowance = own?.pointee.messageAllowance(at: now) { return (own, allowance) }
        let other = tables.first(inGroupOf: index) { index -> (UnsafeMutablePointer<Downlink>?, Int)? in
            let downlink = tables.peers[index].pointee.downlink
            return downlink?.pointee.messageAllowance(at: now).map { (downlink, $0) }
        }
        return other ?? (own, .max)
    }

    // MARK: - Back-pressure

    /// The receiver's queue is long: the sender of the message waits for it.
    private func addDebt(_ source: PeerID, _ cost: Int, to index: Int, at now: MonotonicTime) {
        let receiver = tables.peers[index]
        guard receiver.pointee.transport.isDataCongested, let sender = tables.peerIndex[source.rawValue] else { return }
        tables.peers[sender].pointee.transport.holdData(cost)
        receiver.pointee.debts.add(
            cost, of: source, delivered: receiver.pointee.transport.deliveredDataBytes,
            due: now + configuration.data.patience)
    }

    /// Lets senders continue once the receiver has accepted enough; a receiver that accepts too little loses its channel, so that it holds nobody up for long.
    private func settleDebts(of index: Int, at now: MonotonicTime) {
        let receiver = tables.peers[index]
        guard !receiver.pointee.debts.isEmpty else { return }
        let transport = receiver.pointee.transport
        if transport.isDataRelieved { return payDebts(of: index, at: now) }
        guard receiver.pointee.debts.deadline <= now else { return }
        let hasProgress = receiver.pointee.debts.extend(
            delivered: transport.deliveredDataBytes, atLeast: configuration.data.slowestProgress,
            due: now + configuration.data.patience)
        guard !hasProgress else { return }
        counters.data.channelsClosedAsSlow &+= 1
        transport.closeSlowDataChannels()
        payDebts(of: index, at: now)
        handleTransportEvents(of: index, at: now)
    }

    /// Nobody waits for this peer any more.
    func payDebts(of index: Int, at now: MonotonicTime) {
        for (source, cost) in tables.peers[index].pointee.debts.removeAll() { release(cost, of: source, at: now) }
    }

    private func release(_ cost: Int, of id: PeerID, at now: MonotonicTime) {
        guard let index = tables.peerIndex[id.rawValue] else { return }
        tables.peers[index].pointee.transport.releaseData(cost, at: now)
        handleTransportEvents(of: index, at: now)
    }

    /// Adds what the peer's data channels lost since the last call. Arriving messages are acknowledged, so a call follows each of them.
    private func countLosses(of peer: UnsafeMutablePointer<PeerState>) {
        func add(_ total: Int, _ counted: inout Int, to sum: inout UInt64) {
            if total > counted { sum &+= UInt64(total - counted) }
            counted = total
        }
        let transport = peer.pointee.transport
        add(transport.droppedMessages, &peer.pointee.lossyDropsCounted, to: &counters.data.lossyDropped)
        add(transport.ignoredMessages, &peer.pointee.ignoredCounted, to: &counters.data.ignored)
    }
}
