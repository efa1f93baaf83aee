import Forwarding
import MediaControl
import PeerTransport
import Primitives

// Subscriptions: how they are added, changed and removed, how their videos start, and how each peer's bandwidth is divided among them.

extension WorkerEngine {
    func subscribe(_ description: SubscriptionDescription, at now: MonotonicTime) -> Bool {
        guard let peer = tables.peerIndex[description.peer.rawValue],
            tables.subscriptionIndex[description.id.rawValue] == nil,
            let downlink = tables.peers[peer].pointee.downlink,
            downlink.pointee.subscriptionCount < MediaLimits.subscriptionsPerParticipant
        else { return false }
        let track = description.track.flatMap { tables.trackIndex[$0.rawValue] }
        // If the track was removed meanwhile, the section stays empty until another command.
        let subscription = Subscription(description, random: &random)
        let index = tables.addSubscription(
            SubscriptionState(subscription, peer: peer, isReady: maySend(description.kind, to: peer)),
            description)
        if let track { attach(index, to: track, at: now) }
        return true
    }

    func update(subscription index: Int, _ description: SubscriptionDescription, at now: MonotonicTime) {
        let state = tables.subscriptions[index]
        let track = state.pointee.track >= 0 ? tables.tracks[state.pointee.track].pointee.track : nil
        state.pointee.subscription.update(description, track: track)
        noteOrientation(index)
        setPaused(index, description.paused, at: now)
        setPreference(index, description.preference, at: now)
    }

    func removeSubscription(_ index: Int) {
        detach(index)
        tables.removeSubscription(index)
    }

    func setPaused(_ index: Int, _ paused: Bool, at now: MonotonicTime) {
        let state = tables.subscriptions[index]
        let track = state.pointee.track >= 0 ? tables.tracks[state.pointee.track].pointee.track : nil
        if state.pointee.subscription.setPaused(paused, track: track) { awaitDecision(index) }
        if !paused, state.pointee.isReady { scheduleReports(of: state.pointee.peer, at: now) }
        scheduleAllocation(of: state.pointee.peer, at: now)
        demandChanged(by: index, at: now)
    }

    func setPreference(_ index: Int, _ preference: LayerPreference, at now: MonotonicTime) {
        let state = tables.subscriptions[index]
        let track = state.pointee.track >= 0 ? tables.tracks[state.pointee.track].pointee.track : nil
        if state.pointee.subscription.setPreference(preference, track: track, at: now) { awaitDecision(index) }
        scheduleAllocation(of: state.pointee.peer, at: now)
        demandChanged(by: index, at: now)
    }

    func switchSubscription(_ index: Int, to id: TrackID?, at now: MonotonicTime) -> Bool {
        let track = id.flatMap { tables.trackIndex[$0.rawValue] }
        guard track != nil || id == nil else { return false }
        guard track != tables.subscriptions[index].pointee.track else { return true }
        detach(index)
        if let track { attach(index, to: track, at: now) }
        return true
    }

    // MARK: - Tracks

    private func attach(_ index: Int, to track: Int, at now: MonotonicTime) {
        tables.attach(index, to: track)
        let state = tables.subscriptions[index], target = tables.tracks[track]
        state.pointee.subscription.bind(target.pointee.track)
        state.pointee.subscription.captureOffset = tables.peers[target.pointee.peer].pointee.captureOffset
        noteOrientation(index)
        // The decision about another track begins anew.
        if state.pointee.allocation.isHeld { emit(.subscriptionHeld(state.pointee.subscription.id, false)) }
        state.pointee.allocation = VideoAllocation(display: state.pointee.allocation.display)
        _ = state.pointee.subscription.setBound(.unlimited, track: target.pointee.track, at: now)
        awaitDecision(index)
        scheduleAllocation(of: state.pointee.peer, at: now)
        if state.pointee.isReady { scheduleReports(of: state.pointee.peer, at: now) }
        demandChanged(of: track, at: now)
    }

    /// Detaches a subscription from its track. It remembers where the stream stopped.
    func detach(_ index: Int) {
        let state = tables.subscriptions[index]
        guard state.pointee.track >= 0 else { return }
        let track = state.pointee.track
        state.pointee.subscription.unbind(tables.tracks[track].pointee.track)
        tables.detach(index)
        state.pointee.lacksOrientation = false
        demandChanged(of: track, at: clock)
    }

    // MARK: - Starting

    /// First the bandwidth decision, then the necessary keyframe; and for all videos that start in this turn together.
    private func awaitDecision(_ index: Int) {
        let state = tables.subscriptions[index]
        state.pointee.subscription.awaitBound()
        guard state.pointee.subscription.isAwaitingBound else { return }
        awaitDecision(of: state.pointee.peer)
    }

    /// Requests the keyframe that a subscription needs to start; nothing for audio, nor before packets may be sent to the subscriber.
    private func requestStart(_ index: Int, at now: MonotonicTime) {
        let state = tables.subscriptions[index]
        guard state.pointee.track >= 0, state.pointee.isReady else { return }
        let track = tables.tracks[state.pointee.track]
        guard state.pointee.subscription.lookForStart(track.pointee.track, at: now) else { return }
        let layer = state.pointee.subscription.wantedLayer
        // A recent keyframe in the history suffices for the new subscriber.
        guard
            track.pointee.track.layer(layer).pointee.replayStart(
                at: now, maximumAge: state.pointee.subscription.replayAge) == nil
        else {
            return markDirty(state.pointee.track)
        }
        requestKeyframe(state.pointee.track, layer: layer)
    }

    /// Packets may be sent to the subscriber from now on. After an interruption it misses packets: it gets a keyframe.
    func startSubscriptions(of peer: Int, at now: MonotonicTime) {
        scheduleAllocation(of: peer, at: now)
        allocate(peer, at: now)
        // While nothing could be sent, none was planned.
        scheduleReports(of: peer, at: now)
        for state in tables.subscriptions(ofPeer: peer) where maySend(state.pointee.subscription.kind, to: peer) {
            state.pointee.isReady = true
            let layer = state.pointee.subscription.kind == .video ? state.pointee.subscription.layer : nil
            if let layer, state.pointee.track >= 0 {
                requestKeyframe(state.pointee.track, layer: layer)
            } else {
                requestStart(tables.subscriptions.index(of: state), at: now)
            }
        }
    }

    /// Whether packets of this kind may be sent to the subscriber: it is reachable, and not too slow for video.
    private func maySend(_ kind: MediaKind, to peer: Int) -> Bool {
        guard tables.peers[peer].pointee.transport.mayReceive else { return false }
        return kind == .audio || tables.peers[peer].pointee.downlink?.pointee.isHeld != true
    }

    /// Nothing may be sent to the subscriber any more; when it is reachable again, it gets a keyframe.
    func stopSubscriptions(of peer: Int) {
        for state in tables.subscriptions(ofPeer: peer) {
            state.pointee.isReady = false
            state.pointee.subscription.restartReports()
            // It continues from its last number. The publisher's numbers may be arbitrarily far ahead by then.
            if state.pointee.track >= 0 {
                state.pointee.subscription.stop(tables.tracks[state.pointee.track].pointee.track)
            }
        }
    }

    /// Whether the subscriber will see rotated video unrotated, because it did not negotiate the orientation.
    private func noteOrientation(_ index: Int) {
        let state = tables.subscriptions[index]
        guard state.pointee.track >= 0 else { return }
        let published = tables.tracks[state.pointee.track].pointee.track.description
        state.pointee.lacksOrientation =
            published.extensions[.videoOrientation] != 0 && !state.pointee.subscription.hasOrientation
    }

    // MARK: - Bandwidth

    /// Schedules an evaluation of the peer's videos soon after `moment`.
    func scheduleAllocation(of peer: Int, at moment: MonotonicTime) {
        if tables.peers[peer].pointee.downlink?.pointee.look(at: moment) == true { touch(peer) }
    }

    /// Divides the peer's bandwidth, if it is time to.
    func allocate(_ index: Int, at now: MonotonicTime) {
        guard let downlink = tables.peers[index].pointee.downlink else { return }
        let mayReceive = tables.peers[index].pointee.transport.mayReceive
        for change in downlink.pointee.decide(tables, mayReceive: mayReceive, at: now) {
            if change.changesDemand { demandChanged(by: change.subscription, at: now) }
            if let isHeld = change.isHeld {
                let id = tables.subscriptions[change.subscription].pointee.subscription.id
                emit(.subscriptionHeld(id, isHeld))
            }
            if change.needsStart { requestStart(change.subscription, at: now) }
        }
    }

    func setPolicy(_ policy: DownlinkPolicy, of id: PeerID, at now: MonotonicTime) -> Bool {
        guard let index = tables.peerIndex[id.rawValue], let downlink = tables.peers[index].pointee.downlink else {
            return false
        }
        downlink.pointee.setPolicy(policy, in: tables.subscriptions.base)
        scheduleAllocation(of: index, at: now)
        return true
    }

    func setDisplay(_ display: DisplayPreference, of id: SubscriptionID, at now: MonotonicTime) -> Bool {
        guard let index = tables.subscriptionIndex[id.rawValue] else { return false }
        let state = tables.subscriptions[index]
        let wasPinned = state.pointee.isPinned
        state.pointee.allocation.setDisplay(display)
        if wasPinned != display.isPinned { tables.pinChanged(state, to: display.isPinned) }
        scheduleAllocation(of: state.pointee.peer, at: now)
        demandChanged(by: index, at: now)
        return true
    }
}
