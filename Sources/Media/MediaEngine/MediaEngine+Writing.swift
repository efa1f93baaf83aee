import Forwarding
import MediaControl
import PeerTransport
import Primitives

// Step 6 of a packet's way: one copy for each receiver in its run of slots, changed and protected in place. Per packet there is no
// allocation, no reference counting and no clock reading (`StillnessTests`).

extension MediaEngine {
    /// Answers this turn's NACKs, before its new packets, because receivers wait for them; false when the batch is full.
    func writeRepeats(at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        while turn.repeatCursor < turn.repeats.count {
            let request = turn.repeats[turn.repeatCursor]
            guard writeRepeat(request, at: now, into: &batch) else { return false }
            turn.repeatCursor += 1
        }
        return true
    }

    private func writeRepeat(_ request: Turn.Repeat, at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        guard tables.subscriptions.contains(Int(request.subscription)) else { return true }
        let state = tables.subscriptions[Int(request.subscription)]
        let peer = tables.peers[state.pointee.peer]
        guard state.pointee.track >= 0, let downlink = peer.pointee.downlink,
            let route = SendRoute(over: peer.pointee.media, at: now)
        else { return true }
        return downlink.pointee.writeRepeat(
            request.sequence, of: state, track: tables.tracks[state.pointee.track].pointee.track, over: route,
            into: &batch, &counters)
    }

    /// Writes this turn's packets, subscriber by subscriber; false when the batch is full.
    func writePackets(at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        let sendTime = SendStamp.sendTime(at: now)
        while turn.peerCursor < turn.pendingPeers.count {
            let index = Int(turn.pendingPeers[turn.peerCursor])
            let peer = tables.peers[index]
            prefetchPeers(behind: turn.peerCursor)
            if let downlink = peer.pointee.downlink,
                let route = SendRoute(over: peer.pointee.media, at: now, sendTime: sendTime)
            {
                if turn.subscription < 0 { begin(downlink.pointee.firstPending) }
                while turn.subscription >= 0 {
                    let state = tables.subscriptions[turn.subscription]
                    guard writePackets(of: state, downlink, over: route, into: &batch) else { return false }
                    begin(state.pointee.nextPending)
                }
                if downlink.pointee.isWaiting { touch(index) }
            }
            turn.peerCursor += 1
            turn.subscription = -1
        }
        return true
    }

    @inline(__always)
    private func writePackets(
        of state: UnsafeMutablePointer<SubscriptionState>, _ downlink: UnsafeMutablePointer<Downlink>,
        over route: SendRoute, into batch: inout OutboundBatch
    ) -> Bool {
        guard state.pointee.track >= 0 else { return true }
        return downlink.pointee.writePlanned(
            turn.plan.elements, from: &turn.item, of: turn.subscription, state,
            track: tables.tracks[state.pointee.track].pointee.unmanaged, over: route, into: &batch, &counters)
    }

    /// Moves to the first packet of a subscription, whose packets are padded to equal length; -1 for none.
    @inline(__always)
    private func begin(_ index: Int) {
        turn.subscription = index
        guard index >= 0 else { return }
        let state = tables.subscriptions[index]
        let start = state.pointee.planStart, end = state.pointee.planEnd
        turn.item = start
        guard end &- start > 1, state.pointee.track >= 0, configuration.levelsSizes else { return }
        let items = UnsafeMutableBufferPointer(rebasing: turn.plan.elements[start..<end])
        let padded = tables.tracks[state.pointee.track].pointee.unmanaged._withUnsafeGuaranteedRef {
            state.pointee.subscription.level(items, of: $0)
        }
        counters.packetsPadded &+= UInt64(padded)
    }

    /// Writes queued packets, as far as the path allows, then the padding of a due probe; false when the batch
    /// is full.
    func writePaced(of index: Int, at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        let peer = tables.peers[index]
        guard let downlink = peer.pointee.downlink else { return true }
        if downlink.pointee.isWaiting, let route = SendRoute(over: peer.pointee.media, at: now) {
            guard downlink.pointee.writeWaiting(of: index, tables, over: route, into: &batch, &counters) else {
                return false
            }
        }
        downlink.pointee.advance(to: now)
        defer { countProbe(of: downlink) }
        guard downlink.pointee.isProbeDue(at: now) else { return true }
        guard let route = SendRoute(over: peer.pointee.media, at: now) else {
            downlink.pointee.abandonProbe()
            return true
        }
        return downlink.pointee.writeProbe(tables, over: route, into: &batch, &counters)
    }

    /// Counts a probe that has finished.
    func countProbe(of downlink: UnsafeMutablePointer<Downlink>) {
        if let outcome = downlink.pointee.takeProbeOutcome() { counters.probes.count(outcome) }
    }
}
