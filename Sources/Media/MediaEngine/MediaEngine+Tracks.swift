import Forwarding
import MediaControl
import PeerTransport
import Primitives

extension MediaEngine {
    func addTrack(_ description: TrackDescription, at now: MonotonicTime) -> Bool {
        guard let peer = tables.peerIndex[description.peer.rawValue], tables.trackIndex[description.id.rawValue] == nil,
            let track = tables.peers[peer].pointee.uplink.addTrack(description, at: now)
        else { return false }
        let index = tables.tracks.insert(TrackState(id: description.id, track: track, peer: peer))
        track.tag = index
        tables.trackIndex.set(description.id.rawValue, to: index)
        tables.peers[peer].pointee.trackCount += 1
        let room = tables.rooms[tables.peers[peer].pointee.room]
        room.pointee.speakers.add(track, at: now)
        setDeadline(ofRoom: tables.peers[peer].pointee.room)
        demandChanged(of: index, at: now)
        touch(peer)
        return true
    }

    func updateTrack(_ description: TrackDescription) -> Bool {
        guard let index = tables.trackIndex[description.id.rawValue] else { return false }
        let peer = tables.tracks[index].pointee.peer
        tables.peers[peer].pointee.uplink.updateTrack(description)
        let track = tables.tracks[index].pointee.track
        for state in tables.subscriptions(ofTrack: index) { state.pointee.subscription.trackUpdated(track) }
        touch(peer)
        return true
    }

    /// Removes a track; its subscribers' sections stay, without a track.
    func removeTrack(_ index: Int) {
        let state = tables.tracks[index]
        while state.pointee.firstSubscription >= 0 { detach(state.pointee.firstSubscription) }
        let peer = tables.peers[state.pointee.peer]
        let track = state.pointee.track
        let room = tables.rooms[peer.pointee.room]
        room.pointee.speakers.remove(state.pointee.id)
        collectSpeakerEvents(of: peer.pointee.room)
        let totals = track.requestTotals
        counters.nacksSent &+= totals.nacks
        counters.keyframeRequestsSent &+= totals.keyframeRequests
        peer.pointee.uplink.removeTrack(state.pointee.id)
        tellSourceChanges(of: state.pointee.peer)
        peer.pointee.trackCount -= 1
        deadlines.remove(DeadlineOwner.track(index))
        tables.trackIndex.remove(state.pointee.id.rawValue)
        tables.tracks.remove(index)
    }

    /// Replaced streams make room for others in the transport; resumed ones keep theirs.
    func tellSourceChanges(of peer: Int) {
        let transport = tables.peers[peer].pointee.transport
        for change in tables.peers[peer].pointee.uplink.takeSourceChanges() {
            if change.isReceived {
                transport.retainReceivingStream(ssrc: change.ssrc)
            } else {
                transport.releaseReceivingStream(ssrc: change.ssrc)
            }
        }
    }

    /// Mutes at once: packets of this turn are not forwarded either. Video resumes with a keyframe.
    func setMuted(_ index: Int, _ muted: Bool, at now: MonotonicTime) {
        let state = tables.tracks[index]
        let track = state.pointee.track
        guard track.isMuted != muted else { return }
        tables.peers[state.pointee.peer].pointee.uplink.setMuted(state.pointee.id, muted)
        if muted { track.endTurn() }
        guard track.description.kind == .video else { return }
        var sent: UInt8 = 0
        for layer in 0..<track.layerCount where track.isActive(layer: layer, at: now) { sent |= 1 << UInt8(layer) }
        if muted { state.pointee.layersBeforeMute = sent }
        var isWanted = false
        for state in tables.subscriptions(ofTrack: index) {
            state.pointee.subscription.stop(track)
            isWanted = isWanted || !state.pointee.subscription.isPaused
            // If the number of videos is limited, another takes its place.
            let policy = tables.peers[state.pointee.peer].pointee.downlink?.pointee.allocator.policy
            if policy?.maximumVideos != nil { scheduleAllocation(of: state.pointee.peer, at: now) }
        }
        guard !muted, isWanted else { return }
        // A stopped layer's keyframe is requested when it is sent again. If no layer was known to be sent, all may resume.
        sent |= state.pointee.layersBeforeMute
        for layer in 0..<track.layerCount where sent == 0 || sent & 1 << UInt8(layer) != 0 {
            requestKeyframe(index, layer: layer)
        }
    }

    /// Requests a keyframe of `layer` from the publisher; it is sent with this turn, unless one was requested just before.
    func requestKeyframe(_ index: Int, layer: Int) {
        tables.tracks[index].pointee.track.requestKeyframe(layer: layer)
        touch(tables.tracks[index].pointee.peer)
    }
}
