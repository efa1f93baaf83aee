import Forwarding
import MediaControl
import PeerTransport
public import Primitives

// Step 5 of a packet's way: every subscription decides about the turn's packets; then every subscriber's packets are written
// back to back (`MediaEngine+Writing`).
//
//   dirty tracks -> subscriptions: plan -> pending peers -> their subscriptions -> slots, protected in place
//
// A full batch stops the writing; the next call continues at the same packet.

extension MediaEngine {
    /// Forwards the packets received since the last call, subscriber by subscriber, and sends due feedback.
    public func endTurn(at now: MonotonicTime, into batch: inout OutboundBatch) -> TurnResult {
        clock = now
        if turn.phase == .idle {
            decideAwaited(at: now)
            planTurn(at: now)
            turn.phase = .repeats
        }
        if turn.phase == .repeats {
            guard writeRepeats(at: now, into: &batch) else { return .needsFlush }
            turn.phase = .packets
        }
        if turn.phase == .packets {
            guard writePackets(at: now, into: &batch) else { return .needsFlush }
            turn.phase = .feedback
        }
        guard finishPeers(at: now, into: &batch) else { return .needsFlush }
        clearTurn()
        return .done
    }

    /// Drops the unwritten packets of an unfinished turn. Only needed for a caller that does not finish its turns.
    func abandonOpenTurn() {
        guard turn.phase != .idle else { return }
        counters.drops.count(.outboundFull)
        clearTurn()
    }

    private func clearTurn() {
        for index in turn.pendingPeers.elements where tables.peers.contains(Int(index)) {
            tables.peers[Int(index)].pointee.downlink?.pointee.clearPending()
        }
        turn.end()
    }

    // MARK: - Deciding

    private func planTurn(at now: MonotonicTime) {
        for index in turn.dirtyTracks.elements where tables.tracks.contains(Int(index)) {
            let state = tables.tracks[Int(index)]
            state.pointee.isDirty = false
            state.pointee.isOpen = false
            planTrack(Int(index), state, at: now)
            let lost = state.pointee.track.overwrittenArrivals
            if lost > 0 { counters.drops[.outboundFull] &+= UInt64(lost) }
            state.pointee.track.endTurn()
        }
        turn.dirtyTracks.removeAll()
        turn.openFrames = 0
    }

    private func planTrack(_ index: Int, _ state: UnsafeMutablePointer<TrackState>, at now: MonotonicTime) {
        let track = state.pointee.track
        guard !track.isMuted else { return }
        let base = tables.subscriptions.base
        var wanted: UInt8 = 0
        var held = MonotonicTime.distantFuture
        var next = state.pointee.firstSubscription
        while next >= 0 {
            let subscription = base + next
            let current = next
            next = subscription.pointee.nextOfTrack
            if next >= 0 { prefetchSubscriptions(from: base + next, base) }
            guard subscription.pointee.isReady else { continue }
            let start = turn.plan.count
            let signals = subscription.pointee.subscription.plan(track, at: now, into: &turn.plan)
            if turn.plan.count > start {
                subscription.pointee.planStart = start
                subscription.pointee.planEnd = turn.plan.count
                enqueue(current, subscription)
            }
            held = min(held, subscription.pointee.subscription.heldUntil)
            guard !signals.isEmpty else { continue }
            if signals.contains(.wantsKeyframe) {
                wanted |= 1 << UInt8(subscription.pointee.subscription.wantedLayer & 7)
            }
            handle(signals, of: subscription, at: now)
        }
        if held != .distantFuture { deadlines.hasten(DeadlineOwner.track(index), to: held) }
        for layer in 0..<track.layerCount where wanted & 1 << UInt8(layer) != 0 { requestKeyframe(index, layer: layer) }
    }

    private func handle(
        _ signals: Subscription.Signals, of state: UnsafeMutablePointer<SubscriptionState>, at now: MonotonicTime
    ) {
        if signals.contains(.started) {
            events.append(.subscriptionStarted(state.pointee.subscription.id))
            scheduleReports(of: state.pointee.peer, at: now)
        }
        if signals.contains(.noCommonCodec) {
            events.append(.subscriptionHasNoCommonCodec(state.pointee.subscription.id))
        }
        if signals.contains(.foundLayer) {
            scheduleAllocation(of: state.pointee.peer, at: now + PublishedTrack.measuringTime)
        }
        if signals.contains(.wantsDecision) { scheduleAllocation(of: state.pointee.peer, at: now) }
    }

    /// Adds a subscription with packets to its peer's chain.
    @inline(__always)
    private func enqueue(_ index: Int, _ state: UnsafeMutablePointer<SubscriptionState>) {
        guard let downlink = tables.peers[state.pointee.peer].pointee.downlink else { return }
        if downlink.pointee.enqueue(index, in: tables.subscriptions.base) {
            turn.pendingPeers.append(Int32(truncatingIfNeeded: state.pointee.peer))
        }
    }
}
