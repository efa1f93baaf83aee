import Forwarding
import MediaControl
import PeerTransport
import Primitives

// Tracks: how they are added, changed and removed, which of their layers are in demand, and how they are recorded: a track's best layer is one more stream,
// which goes into records for a recorder instead of to a peer. A track is recorded at most once.

extension WorkerEngine {
    func addTrack(_ description: TrackDescription, at now: MonotonicTime) -> Bool {
        guard let peer = tables.peerIndex[description.peer.rawValue], tables.trackIndex[description.id.rawValue] == nil,
            let track = tables.peers[peer].pointee.uplink.addTrack(description, at: now)
        else { return false }
        let index = tables.addTrack(track, of: peer, id: description.id)
        enterRoom(index, at: now)
        demandChanged(of: index, at: now)
        touch(peer)
        return true
    }

    func updateTrack(_ description: TrackDescription) -> Bool {
        guard let index = tables.trackIndex[description.id.rawValue] else { return false }
        let peer = tables.tracks[index].pointee.peer
        let replacesSets = tables.peers[peer].pointee.uplink.updateTrack(description)
        let track = tables.tracks[index].pointee.track
        for state in tables.subscriptions(ofTrack: index) { state.pointee.subscription.trackUpdated(track) }
        let recording = tables.tracks[index].pointee.recording
        if recording >= 0 { recorded.stream(recording).pointee.trackUpdated(track) }
        if replacesSets { beginAnew(index) }
        touch(peer)
        return true
    }

    /// All who receive the track continue with its next keyframe, ahead of which they are sent the parameter sets in force.
    private func beginAnew(_ index: Int) {
        let track = tables.tracks[index].pointee.track, recording = tables.tracks[index].pointee.recording
        var isWanted = recording >= 0
        if isWanted { recorded.stream(recording).pointee.stop(track) }
        for state in tables.subscriptions(ofTrack: index) {
            state.pointee.subscription.stop(track)
            isWanted = isWanted || !state.pointee.subscription.isPaused
        }
        if isWanted { requestKeyframe(index, layer: 0) }
    }

    /// Removes a track; its subscribers' sections stay, without a track.
    func removeTrack(_ index: Int) {
        let state = tables.tracks[index]
        endRecording(ofTrack: index, at: clock)
        while state.pointee.subscriptions.first >= 0 { detach(state.pointee.subscriptions.first) }
        leaveRoom(index)
        let peer = tables.peers[state.pointee.peer]
        let track = state.pointee.track
        let totals = track.requestTotals
        counters.nacksSent &+= totals.nacks
        counters.keyframeRequestsSent &+= totals.keyframeRequests
        peer.pointee.uplink.removeTrack(state.pointee.id)
        reportSourceChanges(of: state.pointee.peer)
        deadlines.remove(.track(index))
        tables.removeTrack(index)
    }

    /// Replaced streams make room for others in the transport; resumed ones keep theirs.
    func reportSourceChanges(of peer: Int) {
        let transport = tables.peers[peer].pointee.transport
        for change in tables.peers[peer].pointee.uplink.consumeSourceChanges() {
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
        if muted {
            track.endTurn()
            tables.releasePlace(of: index)
        }
        guard track.description.kind == .video else { return }
        var sent: UInt8 = 0
        for layer in 0..<track.layerCount where track.isActive(layer: layer, at: now) { sent |= 1 << UInt8(layer) }
        if muted { state.pointee.layersBeforeMute = sent }
        var isWanted = state.pointee.recording >= 0
        if isWanted { recorded.stream(state.pointee.recording).pointee.stop(track) }
        for state in tables.subscriptions(ofTrack: index) {
            state.pointee.subscription.stop(track)
            isWanted = isWanted || !state.pointee.subscription.isPaused
            // If the number of videos is limited, another takes its place.
            if tables.peers[state.pointee.peer].pointee.downlink?.pointee.hasVideoLimit == true {
                scheduleAllocation(of: state.pointee.peer, at: now)
            }
        }
        guard !muted, isWanted else { return }
        // A stopped layer's keyframe is requested when it is sent again. If no layer was known to be sent, all may resume.
        sent |= state.pointee.layersBeforeMute
        for layer in 0..<track.layerCount where sent == 0 || sent & 1 << UInt8(layer) != 0 {
            requestKeyframe(index, layer: layer)
        }
    }

    func setTraits(_ traits: TrackTraits, of id: TrackID, at now: MonotonicTime) -> Bool {
        guard let index = tables.trackIndex[id.rawValue] else { return false }
        tables.tracks[index].pointee.traits = traits
        for state in tables.subscriptions(ofTrack: index) { scheduleAllocation(of: state.pointee.peer, at: now) }
        return true
    }

    /// Requests a keyframe of `layer` from the publisher; it is sent with this turn, unless one was requested just before.
    func requestKeyframe(_ index: Int, layer: Int) {
        tables.tracks[index].pointee.track.requestKeyframe(layer: layer)
        touch(tables.tracks[index].pointee.peer)
    }

    // MARK: - Demand for layers

    // The publisher may stop layers that are not in demand.

    /// Updates the demand after a change of a preference, a subscription or a size.
    func demandChanged(of index: Int, at now: MonotonicTime) {
        let state = tables.tracks[index]
        guard state.pointee.track.description.kind == .video else { return }
        let former = state.pointee.demand.deadline
        let all = LayerMask.all(of: state.pointee.track), wanted = LayerMask.wanted(ofTrack: index, in: tables)
        if let layers = state.pointee.demand.update(to: wanted, of: all, at: now) {
            announce(layers, of: index)
        }
        guard former == .distantFuture, state.pointee.demand.deadline != .distantFuture else { return }
        let room = tables.peers[state.pointee.peer].pointee.room
        tables.rooms[room].pointee.fading.add(state.pointee.id)
        setDeadline(ofRoom: room)
    }

    /// The same, after a change of one subscriber's preferences.
    func demandChanged(by subscription: Int, at now: MonotonicTime) {
        let track = tables.subscriptions[subscription].pointee.track
        if track >= 0 { demandChanged(of: track, at: now) }
    }

    /// Processes events of an uplink. A new frame size determines which layer a subscriber's height preference selects.
    func receive(_ uplinkEvents: [MediaEvent], at now: MonotonicTime) {
        for event in uplinkEvents {
            emit(event)
            guard case .trackDimensions(let id, _, _, _) = event, let index = tables.trackIndex[id.rawValue] else {
                continue
            }
            demandChanged(of: index, at: now)
        }
    }

    /// Announces the demand for the layers of a track to its publisher.
    func announce(_ layers: UInt8, of index: Int) {
        let state = tables.tracks[index]
        let flags = (0..<state.pointee.track.choiceCount).map { layers & (1 << UInt8($0)) != 0 }
        emit(.layersWanted(state.pointee.id, flags))
    }

    // MARK: - Recording

    /// Records a track. False if that is impossible: it has ended, which the control plane may not know yet, or is recorded already. The recorder already waits
    /// for the stream then, so it is sent the stream's end.
    func record(_ description: RecordedStreamDescription, at now: MonotonicTime) -> Bool {
        // A stream that is still being recorded gets its end later.
        guard recorded.track(of: description.id) == nil else { return false }
        guard let index = tables.trackIndex[description.track.rawValue], tables.tracks[index].pointee.recording < 0
        else {
            recorded.refuse(description.id, at: now)
            return false
        }
        let state = tables.tracks[index]
        let track = state.pointee.track
        let number = recorded.add(
            RecordedStream(description, of: track, random: &random, at: now), ofTrack: index)
        state.pointee.recording = number
        demandChanged(of: index, at: now)
        if let layer = recorded.stream(number).pointee.layerToRequest(of: track, at: now) {
            requestKeyframe(index, layer: layer)
        }
        return true
    }

    func endRecording(_ id: SubscriptionID, at now: MonotonicTime) -> Bool {
        guard let index = recorded.track(of: id) else { return false }
        endRecording(ofTrack: index, at: now)
        demandChanged(of: index, at: now)
        return true
    }

    /// Ends the recording of a track, if it is recorded.
    func endRecording(ofTrack index: Int, at now: MonotonicTime) {
        let state = tables.tracks[index]
        guard state.pointee.recording >= 0 else { return }
        recorded.remove(state.pointee.recording, at: now)
        state.pointee.recording = -1
    }

    /// Writes this turn's packets of a track that is recorded.
    func writeRecords(_ index: Int, _ state: UnsafeMutablePointer<TrackState>, at now: MonotonicTime) {
        let number = state.pointee.recording
        if let layer = recorded.write(number, of: state.pointee.track, at: now) { requestKeyframe(index, layer: layer) }
        let held = recorded.stream(number).pointee.heldUntil
        if held != .distantFuture { deadlines.hasten(.track(index), to: held) }
    }

    /// Whether there are records to hand on.
    public var hasRecords: Bool { recorded.hasRecords }

    /// Lends the records of the last turn (see `RecordBatch`) to `take`, which returns how many bytes the recorder has room for now, and whether that is ample:
    /// only then do streams continue that had found no room.
    public func handOnRecords(_ take: (UnsafeRawBufferPointer) -> (room: Int, isAmple: Bool)) {
        recorded.handOn(at: clock, take)
    }
}
