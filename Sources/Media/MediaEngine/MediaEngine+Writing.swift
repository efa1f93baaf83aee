import Forwarding
import MediaControl
import PeerTransport
import Primitives

// Step 6 of the way of a packet: one copy for each receiver into its run of slots, changed and protected in place. Per packet nothing
// is allocated, no reference is counted and no clock is read (`StillnessTests`).

extension MediaEngine {
    func writePackets(at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        let subscriptions = subscriptions.base
        let sendTime = SendStamp.sendTime(at: now)
        var tally = SentTally()
        defer { add(tally) }
        while turn.peerCursor < pendingPeers.count {
            let peer = peers[Int(pendingPeers[turn.peerCursor])]
            prefetchPeers(behind: turn.peerCursor)
            if let downlink = peer.pointee.downlink, let destination = peer.pointee.media.pointee.destination {
                if turn.subscription < 0 { begin(downlink.pointee.firstPending, subscriptions, &tally) }
                while turn.subscription >= 0 {
                    let state = subscriptions + turn.subscription
                    let stamping = Stamping(sendTime: sendTime, now: now, destination: destination)
                    guard write(state, of: peer, downlink, stamping, into: &batch, &tally) else { return false }
                    begin(state.pointee.nextPending, subscriptions, &tally)
                }
            }
            turn.peerCursor += 1
            turn.subscription = -1
        }
        return true
    }

    /// Turns to the first packet of a subscription, whose packets are made alike in length; -1 for none.
    @inline(__always)
    private func begin(
        _ index: Int, _ subscriptions: UnsafeMutablePointer<SubscriptionState>, _ tally: inout SentTally
    ) {
        turn.subscription = index
        guard index >= 0 else { return }
        let state = subscriptions + index
        let start = state.pointee.planStart, end = state.pointee.planEnd
        turn.item = start
        guard end &- start > 1, state.pointee.track >= 0, configuration.levelsSizes else { return }
        let items = UnsafeMutableBufferPointer(rebasing: plan.elements[start..<end])
        tally.padded &+= tracks[state.pointee.track].pointee.unmanaged._withUnsafeGuaranteedRef {
            state.pointee.subscription.level(items, of: $0)
        }
    }

    /// Writes the planned packets of one subscription; false when the batch is full.
    @inline(__always)
    private func write(
        _ state: UnsafeMutablePointer<SubscriptionState>, of peer: UnsafeMutablePointer<PeerState>,
        _ downlink: UnsafeMutablePointer<DownlinkState>, _ stamping: Stamping, into batch: inout OutboundBatch,
        _ tally: inout SentTally
    ) -> Bool {
        guard state.pointee.track >= 0 else { return true }
        let media = peer.pointee.media
        let unmanaged = tracks[state.pointee.track].pointee.unmanaged
        let items = plan.elements
        let end = state.pointee.planEnd
        let isNumbered = state.pointee.subscription.usesTransportSequence
        // Sound never waits.
        let control = state.pointee.subscription.kind == .video ? downlink.pointee.control : nil
        control?.pointee.refill(at: stamping.now)
        var item = turn.item
        var packets = 0, bytes = 0
        defer {
            peer.pointee.packetsSent &+= UInt64(packets)
            peer.pointee.bytesSent &+= UInt64(bytes)
            downlink.pointee.rtpPacketsSent &+= UInt64(packets)
            tally.packets &+= packets
            tally.bytes &+= bytes
        }
        while item < end {
            let planned = items[item]
            item &+= 1
            var isFull = false
            if let control, !control.pointee.isOpen {
                isFull = !park(planned, of: state, control, at: stamping.now)
                guard isFull else { continue }
            }
            guard let slot = batch.reserve(Self.slotLength) else {
                turn.item = item &- 1
                return false
            }
            if isNumbered { downlink.pointee.transportSequence &+= 1 }
            let stamp = SendStamp(
                sendTime: stamping.sendTime, transportSequence: downlink.pointee.transportSequence)
            let length = unmanaged._withUnsafeGuaranteedRef {
                isFull
                    ? state.pointee.subscription.writeFiller(
                        insteadOf: planned, stamp: stamp, at: stamping.now, into: slot)
                    : state.pointee.subscription.write(planned, of: $0, stamp: stamp, at: stamping.now, into: slot)
            }
            guard let length else {
                counters.drops.count(.retransmissionTooOld)
                continue
            }
            let total = media.pointee.protectRTP(slot, length: length)
            guard total >= 0 else {
                counters.drops.count(.protectFailed)
                continue
            }
            batch.commit(length: total, to: stamping.destination)
            packets &+= 1
            bytes &+= total
            noteSent(stamp, size: total, isNumbered: isNumbered, downlink, at: stamping.now)
        }
        return true
    }

    /// Room for the largest packet with everything that is added to it.
    static let slotLength = Subscription.maximumLength + PeerTransport.protectionOverhead

    @inline(__always)
    func noteSent(
        _ stamp: SendStamp, size: Int, isNumbered: Bool, _ downlink: UnsafeMutablePointer<DownlinkState>,
        at now: MonotonicTime
    ) {
        guard isNumbered else {
            downlink.pointee.control?.pointee.spend(size)
            return
        }
        let control = downlink.pointee.control ?? downlink.pointee.makeControl()
        control.pointee.sent(stamp.transportSequence, size: size, at: now)
        control.pointee.spend(size)
    }

    private func add(_ tally: SentTally) {
        counters.packetsForwarded &+= UInt64(tally.packets)
        counters.packetsSent &+= UInt64(tally.packets)
        counters.bytesSent &+= UInt64(tally.bytes)
        counters.packetsPadded &+= UInt64(tally.padded)
    }
}
