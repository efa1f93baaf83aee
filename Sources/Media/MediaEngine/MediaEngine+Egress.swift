import Forwarding
import MediaControl
import PeerTransport
public import Primitives

// Steps 5 and 6 of the way of a packet: every subscription decides about the turn's packets, then every subscriber's packets are
// written back to back.
//
//   dirty tracks -> subscriptions: plan -> pending peers -> their subscriptions -> slots, protected in place
//
// A full batch stops the writing; the next call goes on at the same packet.

extension MediaEngine {
    /// Forwards what came in since the last call, subscriber by subscriber, and sends the feedback that is due.
    public func endTurn(at now: MonotonicTime, into batch: inout OutboundBatch) -> TurnResult {
        clock = now
        if turn.phase == .idle {
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

    /// Drops what an unfinished turn has not written. Only a caller that does not finish its turns gets here.
    func abandonOpenTurn() {
        guard turn.phase != .idle else { return }
        counters.drops.count(.outboundFull)
        clearTurn()
    }

    private func clearTurn() {
        for index in pendingPeers.elements {
            guard peers.contains(Int(index)), let downlink = peers[Int(index)].pointee.downlink else { continue }
            downlink.pointee.firstPending = -1
            downlink.pointee.lastPending = -1
        }
        pendingPeers.removeAll()
        repeats.removeAll()
        plan.removeAll()
        turn = TurnState()
    }

    // MARK: - Deciding

    private func planTurn(at now: MonotonicTime) {
        for index in dirtyTracks.elements where tracks.contains(Int(index)) {
            let state = tracks[Int(index)]
            state.pointee.isDirty = false
            planTrack(Int(index), state, at: now)
            state.pointee.track.endTurn()
        }
        dirtyTracks.removeAll()
    }

    private func planTrack(_ index: Int, _ state: UnsafeMutablePointer<TrackState>, at now: MonotonicTime) {
        let track = state.pointee.track
        guard !track.isMuted else { return }
        let base = subscriptions.base
        var wanted: UInt8 = 0
        var held = MonotonicTime.distantFuture
        var next = state.pointee.firstSubscription
        while next >= 0 {
            let subscription = base + next
            let current = next
            next = subscription.pointee.nextOfTrack
            guard subscription.pointee.isReady else { continue }
            let start = plan.count
            let signals = subscription.pointee.subscription.plan(track, at: now, into: &plan)
            if plan.count > start {
                subscription.pointee.planStart = start
                subscription.pointee.planEnd = plan.count
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
    }

    /// Puts a subscription with packets on its peer's chain.
    @inline(__always)
    private func enqueue(_ index: Int, _ state: UnsafeMutablePointer<SubscriptionState>) {
        state.pointee.nextPending = -1
        guard let downlink = peers[state.pointee.peer].pointee.downlink else { return }
        if downlink.pointee.lastPending >= 0 {
            subscriptions[downlink.pointee.lastPending].pointee.nextPending = index
        } else {
            downlink.pointee.firstPending = index
            pendingPeers.append(Int32(truncatingIfNeeded: state.pointee.peer))
        }
        downlink.pointee.lastPending = index
    }

    // MARK: - Writing

    private func writePackets(at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        let subscriptions = subscriptions.base
        while turn.peerCursor < pendingPeers.count {
            let peer = peers[Int(pendingPeers[turn.peerCursor])]
            if let downlink = peer.pointee.downlink, let destination = peer.pointee.transport.remoteAddress {
                if turn.subscription < 0 {
                    turn.subscription = downlink.pointee.firstPending
                    turn.item = turn.subscription < 0 ? 0 : subscriptions[turn.subscription].planStart
                }
                while turn.subscription >= 0 {
                    let state = subscriptions + turn.subscription
                    guard write(state, of: peer, downlink, to: destination, at: now, into: &batch) else { return false }
                    turn.subscription = state.pointee.nextPending
                    if turn.subscription >= 0 { turn.item = subscriptions[turn.subscription].planStart }
                }
            }
            turn.peerCursor += 1
            turn.subscription = -1
        }
        return true
    }

    /// Writes the planned packets of one subscription; false when the batch is full.
    @inline(__always)
    private func write(
        _ state: UnsafeMutablePointer<SubscriptionState>, of peer: UnsafeMutablePointer<PeerState>,
        _ downlink: UnsafeMutablePointer<DownlinkState>, to destination: SocketAddress, at now: MonotonicTime,
        into batch: inout OutboundBatch
    ) -> Bool {
        guard state.pointee.track >= 0 else { return true }
        let track = tracks[state.pointee.track].pointee.track
        let transport = peer.pointee.transport
        let items = plan.elements
        var item = turn.item
        var packets: UInt64 = 0, bytes: UInt64 = 0
        defer {
            peer.pointee.packetsSent &+= packets
            peer.pointee.bytesSent &+= bytes
            downlink.pointee.rtpPacketsSent &+= packets
            counters.packetsForwarded &+= packets
            counters.packetsSent &+= packets
            counters.bytesSent &+= bytes
        }
        while item < state.pointee.planEnd {
            guard let slot = batch.reserve(Self.slotLength) else {
                turn.item = item
                return false
            }
            let stamp = nextStamp(downlink, state, at: now)
            let planned = items[item]
            item &+= 1
            guard let length = state.pointee.subscription.write(planned, of: track, stamp: stamp, at: now, into: slot)
            else {
                counters.drops.count(.retransmissionTooOld)
                continue
            }
            guard let total = transport.protectRTP(slot, length: length) else {
                counters.drops.count(.protectFailed)
                continue
            }
            batch.commit(length: total, to: destination)
            packets &+= 1
            bytes &+= UInt64(total)
            noteSent(stamp, size: total, downlink, state, at: now)
        }
        return true
    }

    /// Room for the largest packet with everything that is added to it.
    static let slotLength = Subscription.maximumLength + PeerTransport.protectionOverhead

    @inline(__always)
    private func nextStamp(
        _ downlink: UnsafeMutablePointer<DownlinkState>, _ state: UnsafeMutablePointer<SubscriptionState>,
        at now: MonotonicTime
    ) -> SendStamp {
        if state.pointee.subscription.usesTransportSequence { downlink.pointee.transportSequence &+= 1 }
        return SendStamp(at: now, transportSequence: downlink.pointee.transportSequence)
    }

    @inline(__always)
    private func noteSent(
        _ stamp: SendStamp, size: Int, _ downlink: UnsafeMutablePointer<DownlinkState>,
        _ state: UnsafeMutablePointer<SubscriptionState>, at now: MonotonicTime
    ) {
        guard state.pointee.subscription.usesTransportSequence else { return }
        if downlink.pointee.log == nil { downlink.pointee.log = SentPacketLog() }
        downlink.pointee.log?.note(stamp.transportSequence, size: size, at: now)
    }

    /// Answers this turn's NACKs; false when the batch is full.
    private func writeRepeats(at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        while turn.repeatCursor < repeats.count {
            let request = repeats[turn.repeatCursor]
            guard subscriptions.contains(Int(request.subscription)) else {
                turn.repeatCursor += 1
                continue
            }
            guard let slot = batch.reserve(Self.slotLength) else { return false }
            turn.repeatCursor += 1
            writeRepeat(request, into: slot, at: now, &batch)
        }
        return true
    }

    private func writeRepeat(
        _ request: RepeatRequest, into slot: UnsafeMutableRawBufferPointer, at now: MonotonicTime,
        _ batch: inout OutboundBatch
    ) {
        let state = subscriptions[Int(request.subscription)]
        let peer = peers[state.pointee.peer]
        guard state.pointee.track >= 0, let downlink = peer.pointee.downlink,
            let destination = peer.pointee.transport.remoteAddress
        else { return }
        let track = tracks[state.pointee.track].pointee.track
        let isOwnStream = state.pointee.subscription.repeatsAsRTX
        let stamp =
            isOwnStream
            ? nextStamp(downlink, state, at: now)
            : SendStamp(at: now, transportSequence: downlink.pointee.transportSequence)
        guard
            let length = state.pointee.subscription.writeRepeat(
                request.sequence, of: track, stamp: stamp, at: now, into: slot)
        else { return counters.drops.count(.retransmissionTooOld) }
        guard let total = peer.pointee.transport.protectRTP(slot, length: length) else {
            return counters.drops.count(.protectFailed)
        }
        batch.commit(length: total, to: destination)
        peer.pointee.packetsSent &+= 1
        peer.pointee.bytesSent &+= UInt64(total)
        downlink.pointee.rtpPacketsSent &+= 1
        counters.packetsSent &+= 1
        counters.bytesSent &+= UInt64(total)
        counters.retransmissionsSent &+= 1
        if isOwnStream { noteSent(stamp, size: total, downlink, state, at: now) }
    }
}
