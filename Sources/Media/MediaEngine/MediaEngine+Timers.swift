import Forwarding
import MediaControl
import PeerTransport
public import Primitives

extension MediaEngine {
    /// Processes all deadlines that are due.
    public func advance(to now: MonotonicTime, into batch: inout OutboundBatch) -> TurnResult {
        clock = now
        abandonOpenTurn()
        while deadlines.next <= now {
            guard batch.hasRoom(for: Self.transportReserve),
                batch.count + Self.transportReserveDatagrams <= batch.capacity
            else { return .needsFlush }
            guard let owner = deadlines.popDue(at: now) else { break }
            let index = owner / 3
            switch owner % 3 {
            case 0: advancePeer(index, to: now, into: &batch)
            // A held packet is due: the track's subscriptions are planned once more.
            case 1: markDirty(index)
            default: advanceRoom(index, to: now)
            }
        }
        return .done
    }

    /// ICE and DTLS timers; reports and feedback follow in `endTurn`, which processes every touched peer.
    private func advancePeer(_ index: Int, to now: MonotonicTime, into batch: inout OutboundBatch) {
        let transport = tables.peers[index].pointee.transport
        if transport.nextDeadline <= now { transport.advance(to: now, into: &batch) }
        tables.peers[index].pointee.isTransportTouched = true
        handleTransportEvents(of: index, at: now)
    }

    private func advanceRoom(_ index: Int, to now: MonotonicTime) {
        let speakers = tables.rooms[index].pointee.speakers
        speakers.advance(to: now)
        collectSpeakerEvents(of: index)
        advanceFading(ofRoom: index, to: now)
        setDeadline(ofRoom: index)
    }

    func collectSpeakerEvents(of room: Int) {
        let speakers = tables.rooms[room].pointee.speakers
        guard speakers.hasEvents else { return }
        for event in speakers.takeEvents() {
            if case .dominantSpeakerChanged(_, let track) = event { dominantChanged(in: room, to: track, at: clock) }
            events.append(event)
        }
    }

    /// Writes the due packets of touched peers and updates their deadlines; false when the batch is full.
    func finishPeers(at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        while turn.feedbackCursor < turn.touchedPeers.count {
            let index = Int(turn.touchedPeers[turn.feedbackCursor])
            if tables.peers.contains(index) {
                allocate(index, at: now)
                guard writePaced(of: index, at: now, into: &batch), writeFeedback(of: index, at: now, into: &batch),
                    writeSenderReports(of: index, at: now, into: &batch)
                else { return false }
                tables.peers[index].pointee.isTouched = false
                deadlines.set(DeadlineOwner.peer(index), to: nextDeadline(of: index, at: now))
            }
            turn.feedbackCursor += 1
        }
        turn.touchedPeers.removeAll()
        return true
    }

    private func nextDeadline(of index: Int, at now: MonotonicTime) -> MonotonicTime {
        let peer = tables.peers[index]
        if peer.pointee.isTransportTouched {
            peer.pointee.transportDeadline = peer.pointee.transport.nextDeadline
            peer.pointee.isTransportTouched = false
        }
        let transport = peer.pointee.transportDeadline
        guard peer.pointee.transport.isConnected else { return transport }
        let receiving = min(transport, peer.pointee.uplink.nextDeadline)
        guard let downlink = peer.pointee.downlink else { return receiving }
        return min(receiving, downlink.pointee.nextDeadline(at: now))
    }
}
