import Forwarding
import MediaControl
import PeerTransport
import Primitives

// Estimate -> layers: what each picture of a peer gets, how probing is told what for, and what is remembered of it.

extension MediaEngine {
    /// What a packet costs beyond what layers are measured by: IP and UDP headers, protection and the server's own extensions, 50 of
    /// some 1,000 bytes.
    static let overhead = 1.05

    /// Looks at the peer's pictures soon after `moment`.
    func scheduleAllocation(of peer: Int, at moment: MonotonicTime) {
        guard let downlink = tables.peers[peer].pointee.downlink else { return }
        downlink.pointee.allocation.isCalm = false
        guard moment < downlink.pointee.allocation.nextLook else { return }
        downlink.pointee.allocation.nextLook = moment
        touch(peer)
    }

    /// Looks at once where the estimate has moved.
    func estimateMoved(of peer: Int, at now: MonotonicTime) {
        guard let downlink = tables.peers[peer].pointee.downlink else { return }
        if downlink.pointee.allocation.isHastened(by: downlink.pointee.estimate(at: now)) {
            scheduleAllocation(of: peer, at: now)
        }
    }

    /// Shares the peer's bandwidth out, if it is time to.
    func allocate(_ index: Int, at now: MonotonicTime) {
        guard let downlink = tables.peers[index].pointee.downlink, downlink.pointee.allocation.nextLook <= now else {
            return
        }
        downlink.pointee.allocation.nextLook = .distantFuture
        guard tables.peers[index].pointee.transport.mayReceive else { return }
        noteEstimate(of: downlink, at: now)
        if downlink.pointee.allocation.isCalm, fitsWithRoom(downlink, at: now) {
            downlink.pointee.allocation.nextLook = now + AllocationState.calmInterval
            return
        }
        requests.removeAll(keepingCapacity: true)
        let sound = collectRequests(of: downlink, at: now)
        guard !requests.isEmpty else { return }
        downlink.pointee.allocation.nextLook = now + AllocationState.interval
        let estimate = pathEstimate(of: downlink, at: now)
        let rules = rules(of: downlink, estimate: estimate, sound: sound)
        let decisions = Allocation.decide(requests, under: rules)
        for (position, decision) in decisions.enumerated() {
            take(decision, for: requests[position], of: requestedBy[position], downlink, estimate: estimate, at: now)
        }
        tellDemand(decisions, of: downlink, sound: sound, estimate: estimate, at: now)
        if !decisions.contains(where: { $0.reason.isShort }) {
            downlink.pointee.allocation.nextLook = now + AllocationState.calmInterval
            // What is not sent yet may begin.
            downlink.pointee.allocation.isCalm = !decisions.contains { $0.reason == .blocked(.notSent) }
        }
    }

    private func noteEstimate(of downlink: UnsafeMutablePointer<Downlink>, at now: MonotonicTime) {
        let condition = downlink.pointee.condition(at: now)
        guard condition.isMeasured, let estimate = condition.estimate else { return }
        downlink.pointee.allocation.estimates.note(estimate, at: now)
    }

    /// Whether all that is sent to the peer, in the largest layers, takes less than two thirds of its path: then there is nothing to decide, and
    /// finding that out allocates nothing.
    private func fitsWithRoom(_ downlink: UnsafeMutablePointer<Downlink>, at now: MonotonicTime) -> Bool {
        let policy = downlink.pointee.allocation.policy
        guard policy.maximumBitrate == nil, policy.maximumVideos == nil else { return false }
        guard let estimate = downlink.pointee.estimate(at: now) else { return true }
        var total: Int64 = 0
        for state in downlink.pointee.subscriptions(in: tables.subscriptions.base) {
            guard state.pointee.track >= 0 else { continue }
            // Which frames are enough follows the publisher's pace.
            guard state.pointee.picture.wish.framesPerSecond == nil else { return false }
            let track = tables.tracks[state.pointee.track].pointee.track
            var most: Int64 = 0
            for layer in 0..<track.layerCount {
                most = max(most, track.layer(layer).pointee.bitrate(at: now).bitsPerSecond)
            }
            total &+= most
        }
        return total * 3 < estimate.bitsPerSecond * 2
    }

    /// Lets a decision hold.
    private func take(
        _ decision: AllocationDecision, for request: AllocationRequest, of index: Int,
        _ downlink: UnsafeMutablePointer<Downlink>, estimate: Bitrate?, at now: MonotonicTime
    ) {
        let state = tables.subscriptions[index]
        let owner = tables.tracks[state.pointee.track]
        let layer = decision.layer.map {
            AllocationRequest.CurrentLayer(spatial: $0.spatial, temporal: $0.temporal)
        }
        let condition = downlink.pointee.condition(at: now)
        let wasSurplus = state.pointee.picture.isSurplus
        let isNew = state.pointee.picture.take(
            layer, cost: decision.layer?.bitrate ?? .zero, reason: decision.reason.word,
            isShort: decision.reason.isShort && !condition.isSilent, left: request.currentBitrate, estimate: estimate,
            isByLoss: condition.isBoundByLoss, at: now)
        let record = DecisionRecord(decision, track: owner.pointee.id, estimate: estimate, at: now)
        state.pointee.picture.latest = record
        guard isNew || state.pointee.subscription.isAwaitingBound else { return }
        if state.pointee.picture.isSurplus != wasSurplus { demandChanged(by: index, at: now) }
        if isNew { downlink.pointee.allocation.decisions.append(record) }
        let isLimited = estimate != nil && state.pointee.subscription.usesTransportSequence
        let bound = bound(
            for: decision, layer: layer, isLimited: isLimited,
            wishesFrames: state.pointee.picture.wish.framesPerSecond != nil,
            isCounted: downlink.pointee.allocation.policy.maximumVideos != nil)
        if state.pointee.subscription.setBound(bound, track: owner.pointee.track, at: now) {
            if condition.isCongested, condition.queueDelay >= AllocationState.fullQueue {
                state.pointee.subscription.endLarger(owner.pointee.track)
            }
            askForStart(index, at: now)
        }
    }

    private func bound(
        for decision: AllocationDecision, layer: AllocationRequest.CurrentLayer?, isLimited: Bool, wishesFrames: Bool,
        isCounted: Bool
    ) -> LayerBound {
        switch decision.reason {
        // It may be one too many.
        case .blocked(.notSent) where isCounted: .undecided
        // Nothing was measured yet: begin low where bandwidth may be short.
        case .blocked(.notSent): isLimited ? .upTo(spatial: 0, temporal: .max) : .unlimited
        // The size is the subscription's own to keep, frames are not.
        case .asWished where wishesFrames: layer.map { .upTo(spatial: .max, temporal: $0.temporal) } ?? .unlimited
        // The viewer stopped it itself: no reason of bandwidth holds it.
        case .blocked(.paused): .unlimited
        // A larger layer that begins later is measured first.
        case .best, .asWished: isLimited ? .present : .unlimited
        case .blocked(.hidden), .shortage, .tooManyVideos: .nothing
        case .bandwidth, .capped, .settling, .yieldsToScreen, .oversent:
            layer.map { .upTo(spatial: $0.spatial, temporal: $0.temporal) } ?? .nothing
        }
    }

    // MARK: - Probing

    private func tellDemand(
        _ decisions: [AllocationDecision], of downlink: UnsafeMutablePointer<Downlink>, sound: Double,
        estimate: Bitrate?, at now: MonotonicTime
    ) {
        var allocated = 0.0, wanted = 0.0
        var rise: Double?
        // Where the policy's cap binds, the path is not what is short: nothing beyond it is wanted, and nothing is probed for.
        let isCapped = downlink.pointee.allocation.policy.maximumBitrate.map { $0 < estimate ?? $0 } ?? false
        for (position, decision) in decisions.enumerated() {
            let own = Double(decision.layer?.bitrate.bitsPerSecond ?? 0)
            let all =
                decision.reason.isShort && !isCapped
                ? requests[position].offers.map { Double($0.bitrate.bitsPerSecond) }.max() ?? own : own
            allocated += own
            wanted += max(own, all)
            guard decision.reason.isShort, !isCapped else { continue }
            guard let room = room(above: decision, own: own, for: requests[position]) else { continue }
            rise = min(rise ?? .infinity, room - own)
        }
        downlink.pointee.allocation.estimate = estimate
        let total = allocated * Self.overhead + sound, all = wanted * Self.overhead + sound
        downlink.pointee.allocation.allocated = .bitsPerSecond(Int64(total))
        downlink.pointee.allocation.wanted = .bitsPerSecond(Int64(all))
        // All have what they want while the estimate says less, as after a keyframe's queue: without a probe it would stay there, and somebody come down.
        let isDoubted = !isCapped && estimate.map { Double($0.bitsPerSecond) < total } ?? false
        let next = rise.map { total + $0 * Self.overhead } ?? (isDoubted ? total : nil)
        downlink.pointee.setDemand(
            allocated: .bitsPerSecond(Int64(total)), next: next.map { .bitsPerSecond(Int64($0)) },
            wanted: .bitsPerSecond(Int64(all)),
            at: now)
    }

    /// What must be there for the next gain, its margin included; nil where there is none.
    private func room(above decision: AllocationDecision, own: Double, for request: AllocationRequest) -> Double? {
        if case .oversent = decision.reason { return own * 1.15 }
        guard let next = decision.next, Double(next.bitrate.bitsPerSecond) > own else { return nil }
        return Double(request.room(for: next).bitsPerSecond)
    }
}
