import Forwarding
import MediaControl
import PeerTransport
import Primitives

extension MediaEngine {
    func subscribe(_ description: SubscriptionDescription, at now: MonotonicTime) -> Bool {
        guard let peer = tables.peerIndex[description.peer.rawValue],
            tables.subscriptionIndex[description.id.rawValue] == nil,
            let downlink = tables.peers[peer].pointee.downlink,
            downlink.pointee.subscriptionCount < MediaLimits.subscriptionsPerParticipant
        else { return false }
        let track = description.track.flatMap { tables.trackIndex[$0.rawValue] }
        // If the track was removed meanwhile, the section stays empty until another command.
        let subscription = Subscription(description, random: &random)
        let index = tables.subscriptions.insert(
            SubscriptionState(subscription, peer: peer, isReady: tables.peers[peer].pointee.transport.mayReceive))
        tables.subscriptionIndex.set(description.id.rawValue, to: index)
        tables.sendingStreams.set(StreamKey.of(peer: peer, ssrc: description.ssrc), to: index)
        if let rtx = description.rtxSSRC { tables.sendingStreams.set(StreamKey.of(peer: peer, ssrc: rtx), to: index) }
        downlink.pointee.add(index, in: tables.subscriptions.base)
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
        let state = tables.subscriptions[index]
        detach(index)
        let peer = tables.peers[state.pointee.peer]
        peer.pointee.downlink?.pointee.remove(index, in: tables.subscriptions.base)
        release(state.pointee.subscription.ssrc, of: state.pointee.peer)
        if let rtx = state.pointee.subscription.rtxSSRC { release(rtx, of: state.pointee.peer) }
        tables.subscriptionIndex.remove(state.pointee.subscription.id.rawValue)
        tables.subscriptions.remove(index)
    }

    private func release(_ ssrc: UInt32, of peer: Int) {
        tables.sendingStreams.remove(StreamKey.of(peer: peer, ssrc: ssrc))
        tables.peers[peer].pointee.transport.releaseSendingStream(ssrc: ssrc)
    }

    func setPaused(_ index: Int, _ paused: Bool, at now: MonotonicTime) {
        let state = tables.subscriptions[index]
        let track = state.pointee.track >= 0 ? tables.tracks[state.pointee.track].pointee.track : nil
        if state.pointee.subscription.setPaused(paused, track: track) { awaitDecision(index) }
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

    // MARK: - Lists

    private func attach(_ index: Int, to track: Int, at now: MonotonicTime) {
        let state = tables.subscriptions[index], target = tables.tracks[track]
        state.pointee.track = track
        state.pointee.nextOfTrack = target.pointee.firstSubscription
        state.pointee.previousOfTrack = -1
        if target.pointee.firstSubscription >= 0 {
            tables.subscriptions[target.pointee.firstSubscription].pointee.previousOfTrack = index
        }
        target.pointee.firstSubscription = index
        state.pointee.subscription.bind(target.pointee.track)
        state.pointee.subscription.captureOffset = tables.peers[target.pointee.peer].pointee.captureOffset
        noteOrientation(index)
        state.pointee.allocation = VideoAllocation(display: state.pointee.allocation.display)
        _ = state.pointee.subscription.setBound(.unlimited, track: target.pointee.track, at: now)
        awaitDecision(index)
        scheduleAllocation(of: state.pointee.peer, at: now)
        demandChanged(of: track, at: now)
    }

    /// Detaches a subscription from its track. It remembers where the stream stopped.
    func detach(_ index: Int) {
        let state = tables.subscriptions[index]
        guard state.pointee.track >= 0 else { return }
        let track = tables.tracks[state.pointee.track]
        state.pointee.subscription.unbind(track.pointee.track)
        let next = state.pointee.nextOfTrack, previous = state.pointee.previousOfTrack
        if next >= 0 { tables.subscriptions[next].pointee.previousOfTrack = previous }
        if previous >= 0 {
            tables.subscriptions[previous].pointee.nextOfTrack = next
        } else {
            track.pointee.firstSubscription = next
        }
        let left = state.pointee.track
        state.pointee.track = -1
        state.pointee.lacksOrientation = false
        demandChanged(of: left, at: clock)
    }

    // MARK: - Starting

    /// First the bandwidth decision, then the necessary keyframe; and for all videos that start in this turn together.
    private func awaitDecision(_ index: Int) {
        let state = tables.subscriptions[index]
        state.pointee.subscription.awaitBound()
        guard state.pointee.subscription.isAwaitingBound else { return }
        turn.awaitingPeers.append(Int32(truncatingIfNeeded: state.pointee.peer))
    }

    /// Decides about starting videos, before the turn's packets.
    func decideAwaited(at now: MonotonicTime) {
        for peer in turn.awaitingPeers.elements where tables.peers.contains(Int(peer)) { allocate(Int(peer), at: now) }
        turn.awaitingPeers.removeAll()
    }

    /// Requests the keyframe that a subscription needs to start; nothing for audio, nor before packets may be sent to the subscriber.
    func askForStart(_ index: Int, at now: MonotonicTime) {
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
        for state in tables.subscriptions(ofPeer: peer) {
            state.pointee.isReady = true
            let layer = state.pointee.subscription.kind == .video ? state.pointee.subscription.layer : nil
            if let layer, state.pointee.track >= 0 {
                requestKeyframe(state.pointee.track, layer: layer)
            } else {
                askForStart(tables.subscriptions.index(of: state), at: now)
            }
        }
    }

    /// Nothing may be sent to the subscriber any more; when it is reachable again, it gets a keyframe.
    func stopSubscriptions(of peer: Int) {
        for state in tables.subscriptions(ofPeer: peer) { state.pointee.isReady = false }
    }

    /// Whether the subscriber will see rotated video unrotated, because it did not negotiate the orientation.
    private func noteOrientation(_ index: Int) {
        let state = tables.subscriptions[index]
        guard state.pointee.track >= 0 else { return }
        let published = tables.tracks[state.pointee.track].pointee.track.description
        state.pointee.lacksOrientation =
            published.extensions[.videoOrientation] != 0 && !state.pointee.subscription.hasOrientation
    }
}

/// Peer and SSRC as one word.
enum StreamKey {
    @inline(__always) static func of(peer: Int, ssrc: UInt32) -> UInt64 { UInt64(peer) << 32 | UInt64(ssrc) }
}
