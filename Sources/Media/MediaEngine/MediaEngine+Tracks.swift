import Forwarding
import MediaControl
import PeerTransport
import Primitives

extension MediaEngine {
    func addTrack(_ description: TrackDescription, at now: MonotonicTime) -> Bool {
        guard let peer = peerIndex[description.peer.rawValue], trackIndex[description.id.rawValue] == nil,
            let track = peers[peer].pointee.uplink.addTrack(description, at: now)
        else { return false }
        let index = tracks.insert(TrackState(id: description.id, track: track, peer: peer))
        track.tag = index
        trackIndex.set(description.id.rawValue, to: index)
        peers[peer].pointee.trackCount += 1
        let room = rooms[peers[peer].pointee.room]
        room.pointee.speakers.add(track, at: now)
        setDeadline(ofRoom: peers[peer].pointee.room)
        demandChanged(of: index, at: now)
        touch(peer)
        return true
    }

    func updateTrack(_ description: TrackDescription) -> Bool {
        guard let index = trackIndex[description.id.rawValue] else { return false }
        let peer = tracks[index].pointee.peer
        peers[peer].pointee.uplink.updateTrack(description)
        let track = tracks[index].pointee.track
        forEachSubscription(of: index) { $0.pointee.subscription.trackUpdated(track) }
        touch(peer)
        return true
    }

    /// Takes a track away; the sections that showed it stay and show nothing.
    func removeTrack(_ index: Int) {
        let state = tracks[index]
        while state.pointee.firstSubscription >= 0 { detach(state.pointee.firstSubscription) }
        let peer = peers[state.pointee.peer]
        let track = state.pointee.track
        let room = rooms[peer.pointee.room]
        room.pointee.speakers.remove(state.pointee.id)
        collectSpeakerEvents(of: peer.pointee.room)
        let totals = track.requestTotals
        counters.nacksSent &+= totals.nacks
        counters.keyframeRequestsSent &+= totals.keyframeRequests
        peer.pointee.uplink.removeTrack(state.pointee.id)
        tellSourceChanges(of: state.pointee.peer)
        peer.pointee.trackCount -= 1
        deadlines.remove(DeadlineOwner.track(index))
        trackIndex.remove(state.pointee.id.rawValue)
        tracks.remove(index)
    }

    /// Streams that were replaced make room for others in the transport, those that came back do not.
    func tellSourceChanges(of peer: Int) {
        let transport = peers[peer].pointee.transport
        for change in peers[peer].pointee.uplink.takeSourceChanges() {
            if change.isReceived {
                transport.retainReceivingStream(ssrc: change.ssrc)
            } else {
                transport.releaseReceivingStream(ssrc: change.ssrc)
            }
        }
    }

    /// Mutes at once: what came in this turn is not forwarded either (C6). Video comes back with a keyframe.
    func setMuted(_ index: Int, _ muted: Bool, at now: MonotonicTime) {
        let state = tracks[index]
        let track = state.pointee.track
        guard track.isMuted != muted else { return }
        peers[state.pointee.peer].pointee.uplink.setMuted(state.pointee.id, muted)
        if muted { track.endTurn() }
        guard track.description.kind == .video else { return }
        var sent: UInt8 = 0
        for layer in 0..<track.layerCount where track.isActive(layer: layer, at: now) { sent |= 1 << UInt8(layer) }
        if muted { state.pointee.layersBeforeMute = sent }
        var isWanted = false
        forEachSubscription(of: index) {
            $0.pointee.subscription.stop(track)
            isWanted = isWanted || !$0.pointee.subscription.isPaused
            // Where pictures are counted, another takes its place.
            let policy = self.peers[$0.pointee.peer].pointee.downlink?.pointee.allocation.policy
            if policy?.maximumVideos != nil { self.scheduleAllocation(of: $0.pointee.peer, at: now) }
        }
        guard !muted, isWanted else { return }
        // One that had stopped is asked for when it is sent again. Where none was known to be sent all may come.
        sent |= state.pointee.layersBeforeMute
        for layer in 0..<track.layerCount where sent == 0 || sent & 1 << UInt8(layer) != 0 {
            requestKeyframe(index, layer: layer)
        }
    }

    /// Asks the publisher for a keyframe of `layer`; it leaves with this turn, unless one was asked for just before (G5).
    func requestKeyframe(_ index: Int, layer: Int) {
        tracks[index].pointee.track.requestKeyframe(layer: layer)
        touch(tracks[index].pointee.peer)
    }

    func forEachSubscription(of index: Int, _ body: (UnsafeMutablePointer<SubscriptionState>) -> Void) {
        var next = tracks[index].pointee.firstSubscription
        while next >= 0 {
            let state = subscriptions[next]
            next = state.pointee.nextOfTrack
            body(state)
        }
    }
}
