import Forwarding
import MediaControl
import PeerTransport
import Primitives

extension MediaEngine {
    func subscribe(_ description: SubscriptionDescription, at now: MonotonicTime) -> Bool {
        guard let peer = peerIndex[description.peer.rawValue], subscriptionIndex[description.id.rawValue] == nil,
            let downlink = peers[peer].pointee.downlink,
            downlink.pointee.subscriptionCount < MediaLimits.subscriptionsPerParticipant
        else { return false }
        let track = description.track.flatMap { trackIndex[$0.rawValue] }
        // A named track that is gone by now: the section stays empty until it is told something else.
        let subscription = Subscription(description, random: &random)
        let index = subscriptions.insert(
            SubscriptionState(subscription, peer: peer, isReady: peers[peer].pointee.transport.mayReceive))
        subscriptionIndex.set(description.id.rawValue, to: index)
        sendingStreams.set(StreamKey.of(peer: peer, ssrc: description.ssrc), to: index)
        if let rtx = description.rtxSSRC { sendingStreams.set(StreamKey.of(peer: peer, ssrc: rtx), to: index) }
        link(index, toPeer: downlink)
        if let track { attach(index, to: track, at: now) }
        return true
    }

    func update(subscription index: Int, _ description: SubscriptionDescription, at now: MonotonicTime) {
        let state = subscriptions[index]
        let track = state.pointee.track >= 0 ? tracks[state.pointee.track].pointee.track : nil
        state.pointee.subscription.update(description, track: track)
        noteOrientation(index)
        setPaused(index, description.paused, at: now)
        setPreference(index, description.preference, at: now)
    }

    func removeSubscription(_ index: Int) {
        let state = subscriptions[index]
        detach(index)
        let peer = peers[state.pointee.peer]
        if let downlink = peer.pointee.downlink { unlink(index, fromPeer: downlink) }
        release(state.pointee.subscription.ssrc, of: state.pointee.peer)
        if let rtx = state.pointee.subscription.rtxSSRC { release(rtx, of: state.pointee.peer) }
        subscriptionIndex.remove(state.pointee.subscription.id.rawValue)
        subscriptions.remove(index)
    }

    private func release(_ ssrc: UInt32, of peer: Int) {
        sendingStreams.remove(StreamKey.of(peer: peer, ssrc: ssrc))
        peers[peer].pointee.transport.releaseSendingStream(ssrc: ssrc)
    }

    func setPaused(_ index: Int, _ paused: Bool, at now: MonotonicTime) {
        let state = subscriptions[index]
        let track = state.pointee.track >= 0 ? tracks[state.pointee.track].pointee.track : nil
        if state.pointee.subscription.setPaused(paused, track: track) { awaitDecision(index) }
        scheduleAllocation(of: state.pointee.peer, at: now)
        demandChanged(by: index, at: now)
    }

    func setPreference(_ index: Int, _ preference: LayerPreference, at now: MonotonicTime) {
        let state = subscriptions[index]
        let track = state.pointee.track >= 0 ? tracks[state.pointee.track].pointee.track : nil
        if state.pointee.subscription.setPreference(preference, track: track, at: now) { awaitDecision(index) }
        scheduleAllocation(of: state.pointee.peer, at: now)
        demandChanged(by: index, at: now)
    }

    func switchSubscription(_ index: Int, to id: TrackID?, at now: MonotonicTime) -> Bool {
        let track = id.flatMap { trackIndex[$0.rawValue] }
        guard track != nil || id == nil else { return false }
        guard track != subscriptions[index].pointee.track else { return true }
        detach(index)
        if let track { attach(index, to: track, at: now) }
        return true
    }

    // MARK: - Lists

    private func attach(_ index: Int, to track: Int, at now: MonotonicTime) {
        let state = subscriptions[index], target = tracks[track]
        state.pointee.track = track
        state.pointee.nextOfTrack = target.pointee.firstSubscription
        state.pointee.previousOfTrack = -1
        if target.pointee.firstSubscription >= 0 {
            subscriptions[target.pointee.firstSubscription].pointee.previousOfTrack = index
        }
        target.pointee.firstSubscription = index
        state.pointee.subscription.bind(target.pointee.track)
        state.pointee.subscription.captureOffset = peers[target.pointee.peer].pointee.captureOffset
        noteOrientation(index)
        state.pointee.picture = PictureState(wish: state.pointee.picture.wish)
        _ = state.pointee.subscription.setBound(.unlimited, track: target.pointee.track, at: now)
        awaitDecision(index)
        scheduleAllocation(of: state.pointee.peer, at: now)
        demandChanged(of: track, at: now)
    }

    /// Takes the track away from a section. The subscription remembers where the stream stood.
    func detach(_ index: Int) {
        let state = subscriptions[index]
        guard state.pointee.track >= 0 else { return }
        let track = tracks[state.pointee.track]
        state.pointee.subscription.unbind(track.pointee.track)
        let next = state.pointee.nextOfTrack, previous = state.pointee.previousOfTrack
        if next >= 0 { subscriptions[next].pointee.previousOfTrack = previous }
        if previous >= 0 {
            subscriptions[previous].pointee.nextOfTrack = next
        } else {
            track.pointee.firstSubscription = next
        }
        let left = state.pointee.track
        state.pointee.track = -1
        state.pointee.lacksOrientation = false
        demandChanged(of: left, at: clock)
    }

    private func link(_ index: Int, toPeer downlink: UnsafeMutablePointer<DownlinkState>) {
        let first = downlink.pointee.firstSubscription
        subscriptions[index].pointee.nextOfPeer = first
        if first >= 0 { subscriptions[first].pointee.previousOfPeer = index }
        downlink.pointee.firstSubscription = index
        downlink.pointee.subscriptionCount += 1
    }

    private func unlink(_ index: Int, fromPeer downlink: UnsafeMutablePointer<DownlinkState>) {
        let next = subscriptions[index].pointee.nextOfPeer, previous = subscriptions[index].pointee.previousOfPeer
        if next >= 0 { subscriptions[next].pointee.previousOfPeer = previous }
        if previous >= 0 {
            subscriptions[previous].pointee.nextOfPeer = next
        } else {
            downlink.pointee.firstSubscription = next
        }
        downlink.pointee.subscriptionCount -= 1
    }

    // MARK: - Starting

    /// First what the path can take, then the keyframe that it needs; and of all pictures that begin in this turn together.
    private func awaitDecision(_ index: Int) {
        let state = subscriptions[index]
        state.pointee.subscription.awaitBound()
        guard state.pointee.subscription.isAwaitingBound else { return }
        awaitingPeers.append(Int32(truncatingIfNeeded: state.pointee.peer))
    }

    /// Decides about what is to begin, ahead of the turn's packets.
    func decideAwaited(at now: MonotonicTime) {
        for peer in awaitingPeers.elements where peers.contains(Int(peer)) { allocate(Int(peer), at: now) }
        awaitingPeers.removeAll()
    }

    /// Asks for the keyframe that a subscription needs to begin; nothing for sound, nor before the subscriber may be sent to.
    func askForStart(_ index: Int, at now: MonotonicTime) {
        let state = subscriptions[index]
        guard state.pointee.track >= 0, state.pointee.isReady else { return }
        let track = tracks[state.pointee.track]
        guard state.pointee.subscription.lookForStart(track.pointee.track, at: now) else { return }
        let layer = state.pointee.subscription.wantedLayer
        // A young keyframe in the history serves the newcomer without another one.
        guard
            track.pointee.track.layer(layer).pointee.replayStart(
                at: now, maximumAge: state.pointee.subscription.replayAge) == nil
        else {
            return markDirty(state.pointee.track)
        }
        requestKeyframe(state.pointee.track, layer: layer)
    }

    /// The subscriber may be sent to from now on. One that was interrupted lacks what was not sent to it: it gets a keyframe.
    func startSubscriptions(of peer: Int, at now: MonotonicTime) {
        guard let downlink = peers[peer].pointee.downlink else { return }
        scheduleAllocation(of: peer, at: now)
        allocate(peer, at: now)
        var next = downlink.pointee.firstSubscription
        while next >= 0 {
            let state = subscriptions[next]
            state.pointee.isReady = true
            let layer = state.pointee.subscription.kind == .video ? state.pointee.subscription.layer : nil
            if let layer, state.pointee.track >= 0 {
                requestKeyframe(state.pointee.track, layer: layer)
            } else {
                askForStart(next, at: now)
            }
            next = subscriptions[next].pointee.nextOfPeer
        }
    }

    /// Nothing may be sent to the subscriber any more; what it lacks then, it gets with a keyframe when it is reachable again.
    func stopSubscriptions(of peer: Int) {
        guard let downlink = peers[peer].pointee.downlink else { return }
        var next = downlink.pointee.firstSubscription
        while next >= 0 {
            subscriptions[next].pointee.isReady = false
            next = subscriptions[next].pointee.nextOfPeer
        }
    }

    /// Whether the subscriber will see turned pictures unturned, because it did not negotiate their orientation (B6).
    private func noteOrientation(_ index: Int) {
        let state = subscriptions[index]
        guard state.pointee.track >= 0 else { return }
        let published = tracks[state.pointee.track].pointee.track.description
        state.pointee.lacksOrientation =
            published.extensions[.videoOrientation] != 0 && !state.pointee.subscription.hasOrientation
    }
}

/// Peer and SSRC as one word.
enum StreamKey {
    @inline(__always) static func of(peer: Int, ssrc: UInt32) -> UInt64 { UInt64(peer) << 32 | UInt64(ssrc) }
}
