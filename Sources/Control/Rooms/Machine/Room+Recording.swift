import MediaControl
import Primitives

// Recordings: an operator says what is recorded, every member is told, and tracks that come later are recorded, too.

extension Room {
    /// How many recordings of one room there may be at a time: one for each participant of a large call.
    private static let maximumRecordings = 100
    /// Players seek to keyframes; a screen's are large.
    private static let keyframeInterval = TimeInterval.seconds(10)
    private static let screenKeyframeInterval = TimeInterval.seconds(30)

    /// Recordings in progress.
    public var recordingsInProgress: [RecordingInfo] { recordings.infos }

    /// Begins a recording. `participant` may be a sid or an identity. Refused where nothing of it can be recorded; a track that is recorded already is not
    /// recorded twice.
    public mutating func startRecording(
        _ scope: RecordingScope, turn: inout RoomTurn
    ) throws(RoomError) -> RecordingInfo {
        guard policy.topology == .routed else {
            throw RoomError(.notRouted, "the room is peer to peer: its media does not pass the server")
        }
        guard recordings.infos.count < Self.maximumRecordings else {
            throw RoomError(.limitExceeded, "the room has as many recordings as it may have")
        }
        var scope = scope
        if let name = scope.participant {
            let session = try session(named: name)
            scope.participant = roster[session]?.info.sid
            if roster[session]?.info.encrypts == true { throw Self.refusal(.endToEndEncrypted) }
        }
        if let sid = scope.track {
            let track = try track(sid)
            if let reason = refusal(of: track) { throw Self.refusal(reason) }
            guard !recordings.isRecorded(track.id) else {
                throw RoomError(.alreadyRecorded, "the track is recorded already")
            }
        }
        guard !recordings.infos.contains(where: { $0.scope == scope }) else {
            throw RoomError(.alreadyRecorded, "the same is recorded already")
        }
        let info = RecordingInfo(sid: turn.sid("RC_"), scope: scope, startedAt: turn.wallClock)
        recordings.add(info)
        turn.recording(.started(info))
        turn.log(.recording(RecordingEvent(.started, recording: info.sid)))
        announceRecordings(&turn)
        recordWanted(&turn)
        return info
    }

    /// Ends a recording.
    public mutating func stopRecording(_ sid: String, turn: inout RoomTurn) throws(RoomError) {
        guard let (info, streams) = recordings.end(sid) else {
            throw RoomError(.recordingNotFound, "the room has no such recording in progress")
        }
        for stream in streams { turn.media(.endRecording(stream)) }
        turn.recording(.stopped(info))
        turn.log(.recording(RecordingEvent(.stopped, recording: sid)))
        announceRecordings(&turn)
        // What another recording left out because this one had it.
        recordWanted(&turn)
    }

    /// Members are told at once.
    private mutating func announceRecordings(_ turn: inout RoomTurn) {
        if let news = announcement.take(info) { roster.notifyAll(.roomUpdated(news), &turn) }
    }

    private mutating func recordWanted(_ turn: inout RoomTurn) {
        for session in roster.sessions {
            for track in routing.tracks(of: session) { recordIfWanted(track, &turn) }
        }
    }

    /// Begins to record a track, if a recording wants it.
    mutating func recordIfWanted(_ id: TrackID, _ turn: inout RoomTurn) {
        guard let track = routing[id], let recording = recordings.recording(for: track.info, id) else { return }
        if let reason = refusal(of: track) {
            turn.recording(.refused(recording: recording.sid, track.info, reason))
            turn.log(
                .recording(
                    RecordingEvent(
                        .failed, recording: recording.sid, track: track.info.sid, reason: reason.rawValue)))
            return
        }
        let stream = SubscriptionID(nextNumber())
        recordings.add(stream, of: id, to: recording.sid)
        turn.recording(.track(recording: recording.sid, stream: stream, track: id, track.info))
        let interval = track.info.source == .screen ? Self.screenKeyframeInterval : Self.keyframeInterval
        turn.media(.record(RecordedStreamDescription(id: stream, track: id, keyframeInterval: interval)))
    }

    /// Ends what is still recorded: the room ends.
    mutating func endRecordings(_ turn: inout RoomTurn) {
        for info in recordings.infos { try? stopRecording(info.sid, turn: &turn) }
    }

    private func refusal(of track: RoomTrack) -> RecordingRefusal? {
        if roster[track.publisher]?.info.encrypts == true { return .endToEndEncrypted }
        return track.description.formats.contains { $0.codec != .otherAudio } ? nil : .codecNotRecordable
    }

    private static func refusal(_ reason: RecordingRefusal) -> RoomError {
        switch reason {
        case .endToEndEncrypted:
            RoomError(.notRecordable, "\(reason.rawValue): the participant encrypts its media end to end")
        case .codecNotRecordable: RoomError(.notRecordable, "\(reason.rawValue): files have no form for the codec")
        }
    }
}
