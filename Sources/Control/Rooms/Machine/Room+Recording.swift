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
    public var recordingsInProgress: [RecordingInfo] {
        recordings.infos.map { info in
            var info = info
            info.scope = info.scope.bounded(by: policy)
            return info
        }
    }

    /// Begins a recording. `participant` may be a sid or an identity. Refused where nothing of it can be recorded; a track that is recorded already is not
    /// recorded twice.
    public mutating func startRecording(
        _ scope: RecordingScope, options: RecordingOptions = RecordingOptions(), turn: inout RoomTurn
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
            if roster[session]?.info.encrypts == true { throw RecordingRefusal.endToEndEncrypted.error }
        }
        if let sid = scope.track {
            let track = try track(sid)
            if let reason = refusal(of: track, turn) { throw reason.error }
            guard RecordingScope().bounded(by: policy).contains(track.info) else {
                throw RoomError(.notRecordable, "the room's policy leaves the track out of recordings")
            }
            guard !recordings.isRecorded(track.id) else {
                throw RoomError(.alreadyRecorded, "the track is recorded already")
            }
        }
        guard !recordings.infos.contains(where: { $0.scope == scope }) else {
            throw RoomError(.alreadyRecorded, "the same is recorded already")
        }
        return begin(scope, isByPolicy: false, options, &turn)
    }

    private mutating func begin(
        _ scope: RecordingScope, isByPolicy: Bool, _ options: RecordingOptions, _ turn: inout RoomTurn
    ) -> RecordingInfo {
        let info = RecordingInfo(
            sid: turn.sid("RC_"), scope: scope, startedAt: turn.wallClock, isByPolicy: isByPolicy,
            options: options.completed(by: policy.recordingOptions))
        recordings.add(info)
        var shown = info
        shown.scope = scope.bounded(by: policy)
        turn.recording(.started(shown))
        turn.log(.recording(RecordingEvent(.started, recording: info.sid)))
        announceRecordings(&turn)
        recordWanted(&turn)
        return shown
    }

    /// Ends a recording. The room's policy does not begin one again before its rules of recording change.
    public mutating func stopRecording(_ sid: String, turn: inout RoomTurn) throws(RoomError) {
        if recordings.byPolicy?.sid == sid { recordings.isPolicyOverruled = true }
        try end(sid, &turn)
    }

    private mutating func end(_ sid: String, _ turn: inout RoomTurn) throws(RoomError) {
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
    private mutating func recordIfWanted(_ id: TrackID, _ turn: inout RoomTurn) {
        guard let track = routing[id], let recording = recordings.recording(for: track.info, id, policy) else {
            return
        }
        if let reason = refusal(of: track, turn) {
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
        recordings.isPolicyOverruled = true
        for info in recordings.infos { try? end(info.sid, &turn) }
    }

    private func refusal(of track: RoomTrack, _ turn: borrowing RoomTurn) -> RecordingRefusal? {
        if roster[track.publisher]?.info.encrypts == true { return .endToEndEncrypted }
        guard track.description.formats.contains(where: { $0.codec != .otherAudio }) else {
            return .codecNotRecordable
        }
        return turn.recordingRefusal
    }
}

// MARK: - By policy

extension Room {
    /// A track came, or is another source than before: it is recorded if the rules say so, and only then.
    mutating func trackMayBeRecorded(_ id: TrackID, _ turn: inout RoomTurn) {
        guard let track = routing[id] else { return }
        endUnwanted(id, &turn)
        if recordings.byPolicy == nil, isWantedByPolicy(track) {
            _ = begin(RecordingScope(), isByPolicy: true, RecordingOptions(), &turn)
        } else {
            recordIfWanted(id, &turn)
        }
    }

    /// Other rules of recording: what they leave out ends, what they want begins.
    mutating func followRecordingRules(_ turn: inout RoomTurn) {
        recordings.isPolicyOverruled = false
        if policy.recording != .fromStart, let info = recordings.byPolicy { try? end(info.sid, &turn) }
        for id in recordings.tracks { endUnwanted(id, &turn) }
        let tracks = roster.sessions.flatMap { routing.tracks(of: $0) }
        if recordings.byPolicy == nil, tracks.contains(where: { routing[$0].map(isWantedByPolicy) ?? false }) {
            _ = begin(RecordingScope(), isByPolicy: true, RecordingOptions(), &turn)
        } else {
            recordWanted(&turn)
        }
        announceRecordings(&turn)
    }

    private mutating func endUnwanted(_ id: TrackID, _ turn: inout RoomTurn) {
        guard let track = routing[id], let stream = recordings.removeUnwanted(track.info, id, policy) else { return }
        turn.media(.endRecording(stream))
    }

    /// Whether a recording has to begin for the track's sake.
    private func isWantedByPolicy(_ track: RoomTrack) -> Bool {
        policy.recording == .fromStart && policy.topology == .routed && !recordings.isPolicyOverruled
            && !recordings.isRecorded(track.id) && RecordingScope().bounded(by: policy).contains(track.info)
    }

    static func recordingDiffers(_ a: RoomPolicy, _ b: RoomPolicy) -> Bool {
        a.recording != b.recording || a.recordingSources != b.recordingSources
            || a.recordingParticipants != b.recordingParticipants
    }

    /// Refuses rules that demand a recording which cannot be, where they did not do so before (`old`).
    public static func checkRecording(
        _ policy: RoomPolicy, after old: RoomPolicy?, _ turn: borrowing RoomTurn
    ) throws(RoomError) {
        guard policy.recording == .fromStart, old?.recording != .fromStart || old?.topology != policy.topology else {
            return
        }
        guard policy.topology == .routed else {
            throw RoomError(
                .notRouted, "a room that is peer to peer cannot be recorded: its media does not pass the server")
        }
        if turn.recordingRefusal == .disabled { throw RecordingRefusal.disabled.error }
    }
}
