import Forwarding
import MediaControl
import Primitives

// Forwards only the loudest microphones of a room, if its policy says so. Every subscriber has a section for every microphone, so nothing is negotiated when
// another one is forwarded; a withheld track is received, measured and kept in its history, and costs its subscribers nothing.

extension Tables {
    func setAudio(_ audio: RoomAudio, of id: RoomID) -> Bool {
        guard let index = roomIndex[id.rawValue] else { return false }
        let room = rooms[index]
        room.pointee.speakers.configure(audio)
        if room.pointee.loudest?.limit != audio.maximumMicrophones {
            // Places are assigned anew: with the next packet of each microphone, and at once to those who speak.
            room.pointee.loudest = audio.maximumMicrophones.map { LoudestMicrophones(limit: $0) }
        }
        room.pointee.loudest?.configure(audio)
        return true
    }

    /// Whether the packets of an audio track are withheld from its subscribers in this turn.
    func isWithheld(
        _ state: UnsafeMutablePointer<TrackState>, at now: MonotonicTime, _ counters: inout WorkerStatistics
    ) -> Bool {
        let room = rooms[peers[state.pointee.peer].pointee.room]
        guard room.pointee.loudest != nil || state.pointee.isWithheld else { return false }
        var verdict = LoudestMicrophones.Verdict.forwarded
        // A publisher that sends no levels cannot be compared with others.
        if !state.pointee.isAlwaysForwarded, state.pointee.track.isMicrophone, state.pointee.track.levels.hasLevels {
            verdict = room.pointee.loudest?.judge(state.pointee.track, at: now) ?? .forwarded
        }
        switch verdict {
        case .withheld:
            if !state.pointee.isWithheld { withhold(state) }
            return true
        case .forwarded: break
        case .forwardedInsteadOf(let other):
            withhold(tracks[other])
            counters.microphoneSwitches &+= 1
        }
        if state.pointee.isWithheld {
            state.pointee.isWithheld = false
            state.pointee.track.beginWithSpeech()
        }
        return false
    }

    /// Stops forwarding to all subscribers who have not pinned the track; their sections stay.
    private func withhold(_ state: UnsafeMutablePointer<TrackState>) {
        state.pointee.isWithheld = true
        for subscription in subscriptions(ofTrack: state.pointee.track.tag) where !subscription.pointee.isPinned {
            subscription.pointee.subscription.stop(state.pointee.track)
        }
    }

    func setAlwaysForwarded(_ index: Int, _ always: Bool) {
        tracks[index].pointee.isAlwaysForwarded = always
        if always { releasePlace(of: index) }
    }

    /// The track needs no place among the loudest any more.
    func releasePlace(of index: Int) {
        rooms[peers[tracks[index].pointee.peer].pointee.room].pointee.loudest?.release(index)
    }

    /// A subscriber has pinned or unpinned a track: a pinned microphone is forwarded to it however quiet it is.
    func pinChanged(_ subscription: UnsafeMutablePointer<SubscriptionState>, to isPinned: Bool) {
        guard subscription.pointee.track >= 0 else { return }
        let state = tracks[subscription.pointee.track]
        state.pointee.pins += isPinned ? 1 : -1
        if !isPinned, state.pointee.isWithheld { subscription.pointee.subscription.stop(state.pointee.track) }
    }
}

extension PublishedTrack {
    /// Audio of a screen share is not compared with voices.
    fileprivate var isMicrophone: Bool { description.source != .screenAudio }
}
