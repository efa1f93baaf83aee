import MediaControl
import PeerTransport
import Primitives

// Messages on data channels: the control plane decides who receives them; here they are queued, and written after audio and video.

extension MediaEngine {
    /// Packets with messages to one peer per turn: 37 kB, so that a queue of the largest size needs 30 turns, in which media goes first.
    private static let dataPacketsPerTurn = 32
    /// When a peer that has more to send is served again.
    private static let dataPause = TimeInterval.milliseconds(1)

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
        let isMediaWaiting = peer.pointee.downlink?.pointee.isWaiting ?? false
        let mark = batch.mark
        let result = peer.pointee.transport.writeData(
            limit: Self.dataPacketsPerTurn, allowsMessages: !isMediaWaiting, at: now, into: &batch)
        let bytes = batch.used - mark.used
        peer.pointee.downlink?.pointee.spendOnData(bytes)
        counters.data.bytesSent &+= UInt64(bytes)
        countLossyDrops(of: peer.pointee.transport, &peer.pointee.lossyDropsCounted)
        peer.pointee.isTransportTouched = true
        peer.pointee.dataResumesAt = result == .limited ? now + Self.dataPause : .distantFuture
        return result != .full
    }

    private func countLossyDrops(of transport: PeerTransport, _ counted: inout Int) {
        let dropped = transport.droppedMessages
        if dropped > counted { counters.data.lossyDropped &+= UInt64(dropped - counted) }
        counted = dropped
    }
}
