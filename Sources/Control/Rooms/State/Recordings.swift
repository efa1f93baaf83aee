import MediaControl
import Primitives

/// The recordings in progress of a room, and the streams of each. Decides which tracks are recorded, at an operator's request or by the room's policy.
///
/// After a call that begins or ends a recording, the caller must do two things, in this order: notify members, and call ``recordWanted(_:_:)``.
///
/// When a track's recording ends, its place is free at once for other tracks in the same step. A move to another room is two steps: while all places are
/// taken, a recorded track that is moved waits in the other room for the next try.
struct Recordings: Sendable {
    private struct Active: Sendable {
        var info: RecordingInfo
        var streams: [TrackID: SubscriptionID] = [:]
    }

    /// Why a track is not recorded.
    private struct Refusal: Sendable {
        var recording: String
        var reason: RecordingRefusal
    }

    /// The maximum number of recordings in one room at a time: one for each participant of a large call.
    private static let maximumCount = 100
    /// Players seek to keyframes; a screen's are large.
    private static let keyframeInterval = TimeSpan.seconds(10)
    private static let screenKeyframeInterval = TimeSpan.seconds(30)
    /// A track that finds no place in the recorder, or loses it, is tried again after this: soon enough for viewers of the file, rarely enough for the room.
    private static let retryInterval = TimeSpan.seconds(5)

    private var active: [Active] = []
    /// Tracks that recordings demand and that cannot be recorded.
    private var refused: [TrackID: Refusal] = [:]
    /// When the tracks that wait for a place in the recorder were last tried, or when the first of them arrived: later ones do not postpone the next try.
    private var lastTry = MonotonicTime.zero
    /// Somebody ended the recording that the policy began: the policy begins no other before its rules change.
    private var isPolicyOverruled = false

    /// In the order in which they began, as others see them: without what the policy excludes.
    func shown(_ policy: RoomPolicy) -> [RecordingInfo] { active.map { $0.info.bounded(by: policy) } }

    /// sids, in the order in which they began.
    var sids: [String] { active.map(\.info.sid) }

    /// The recording that the policy began.
    var byPolicy: RecordingInfo? { active.first { $0.info.isByPolicy }?.info }

    /// Tracks that are recorded.
    var tracks: [TrackID] { active.flatMap(\.streams.keys).sorted() }

    func isRecorded(_ track: TrackID) -> Bool { active.contains { $0.streams[track] != nil } }

    /// The stream that records a track.
    func stream(of track: TrackID) -> SubscriptionID? { active.lazy.compactMap { $0.streams[track] }.first }

    /// When ``recordWanted(_:_:)`` is due because the recorder may have a free place again.
    var nextTry: MonotonicTime {
        isAnyWaiting ? lastTry + Self.retryInterval : .distantFuture
    }

    /// Whether a track waits for a place in the recorder.
    private var isAnyWaiting: Bool { refused.values.contains(where: \.reason.isTemporary) }

    private func isWaiting(_ track: TrackID) -> Bool { refused[track]?.reason.isTemporary == true }
}

// MARK: - At an operator's request

extension Recordings {
    /// Begins a recording. `participant` may be a sid or an identity. Refused where nothing of it can be recorded; a track that is recorded already is not
    /// recorded twice.
    mutating func start(
        _ scope: RecordingScope, _ options: RecordingOptions, _ state: RoomState, _ turn: inout RoomTurn
    ) throws(RoomError) -> RecordingInfo {
        let policy = state.policy
        guard policy.topology == .routed else {
            throw RoomError(.notRouted, "the room is peer to peer: its media does not pass the server")
        }
        guard active.count < Self.maximumCount else {
            throw RoomError(.limitExceeded, "the room has as many recordings as it may have")
        }
        var scope = scope
        if let name = scope.participant {
            let session = try state.session(named: name)
            let info = state.roster[session]?.info
            scope.participant = info?.sid
            // A participant that is recorded by name is the same one after it comes back.
            scope.identity = info?.sid == name ? nil : info?.identity
            if state.roster[session]?.info.encrypts == true { throw RecordingRefusal.endToEndEncrypted.error }
        }
        if let sid = scope.track {
            let track = try state.track(sid)
            if let reason = obstacle(to: track, state) ?? turn.recordingAdmission.refusal { throw reason.error }
            guard RecordingScope().bounded(by: policy).contains(track.info) else {
                throw RoomError(.notRecordable, "the room's policy leaves the track out of recordings")
            }
            guard !isRecorded(track.id) else {
                throw RoomError(.alreadyRecorded, "the track is recorded already")
            }
        }
        guard !active.contains(where: { $0.info.scope == scope }) else {
            throw RoomError(.alreadyRecorded, "the same is recorded already")
        }
        return begin(scope, isByPolicy: false, options, policy, &turn)
    }

    private mutating func begin(
        _ scope: RecordingScope, isByPolicy: Bool, _ options: RecordingOptions, _ policy: RoomPolicy,
        _ turn: inout RoomTurn
    ) -> RecordingInfo {
        let info = RecordingInfo(
            sid: turn.sid("RC_"), scope: scope, startedAt: turn.wallClock, isByPolicy: isByPolicy,
            options: options.completed(by: policy.recordingOptions))
        active.append(Active(info: info))
        let shown = info.bounded(by: policy)
        turn.recording(.started(shown))
        turn.log(.recording(RecordingEvent(.started, recording: info.sid)))
        return shown
    }

    /// Ends a recording on request. The policy does not begin one again before its recording rules change.
    mutating func stop(_ sid: String, _ turn: inout RoomTurn) throws(RoomError) {
        if byPolicy?.sid == sid { isPolicyOverruled = true }
        guard end(sid, &turn) else {
            throw RoomError(.recordingNotFound, "the room has no such recording in progress")
        }
    }

    /// A track ended, and so does a recording of only this track. Returns whether there was one.
    mutating func trackEnds(_ track: RoomTrack, _ turn: inout RoomTurn) -> Bool {
        refused[track.id] = nil
        for index in active.indices { active[index].streams[track.id] = nil }
        let ended = active.filter { $0.info.scope.track == track.info.sid }.map(\.info.sid)
        for sid in ended { _ = end(sid, &turn) }
        return !ended.isEmpty
    }

    /// A participant left, if only for another room, and so ends a recording of only its stay. Returns whether there was one.
    mutating func participantLeaves(_ participant: String, _ turn: inout RoomTurn) -> Bool {
        let ended = active.map(\.info).filter { $0.scope.participant == participant && $0.scope.identity == nil }
        for info in ended { _ = end(info.sid, &turn) }
        return !ended.isEmpty
    }

    /// The room ends: the policy begins no other recording. The caller ends those in progress.
    mutating func roomEnds() { isPolicyOverruled = true }

    /// Ends a recording; false: there is none.
    mutating func end(_ sid: String, _ turn: inout RoomTurn) -> Bool {
        guard let index = active.firstIndex(where: { $0.info.sid == sid }) else { return false }
        let ended = active.remove(at: index)
        refused = refused.filter { $0.value.recording != sid }
        for (_, stream) in ended.streams.sorted(by: { $0.key < $1.key }) { turn.endRecordedTrack(stream) }
        turn.recording(.stopped(ended.info))
        turn.log(.recording(RecordingEvent(.stopped, recording: sid)))
        return true
    }

    /// Begins to record tracks that recordings demand now, for example one that a recording left out because another one, which has ended, had it. Waiting
    /// tracks come first.
    mutating func recordWanted(_ state: inout RoomState, _ turn: inout RoomTurn) {
        lastTry = turn.now
        refused = refused.filter { state.routing[$0.key] != nil }
        var waiting: [TrackID] = [], others: [TrackID] = []
        for session in state.roster.sessions {
            for track in state.routing.tracks(of: session) {
                if isWaiting(track) { waiting.append(track) } else { others.append(track) }
            }
        }
        for track in waiting + others { recordIfWanted(track, &state, &turn) }
    }

    /// Begins to record a track, if a recording demands it; a track is recorded once.
    private mutating func recordIfWanted(_ id: TrackID, _ state: inout RoomState, _ turn: inout RoomTurn) {
        guard let track = state.routing[id], !isRecorded(id),
            let index = active.firstIndex(where: { $0.info.scope.bounded(by: state.policy).contains(track.info) })
        else {
            refused[id] = nil
            return
        }
        let sid = active[index].info.sid
        if let reason = obstacle(to: track, state) ?? turn.reserveRecordedTrack() {
            return refuse(track, Refusal(recording: sid, reason: reason), &turn)
        }
        refused[id] = nil
        let stream = SubscriptionID(state.nextNumber())
        active[index].streams[id] = stream
        turn.recording(.track(recording: sid, stream: stream, track: id, track.info))
        let interval = track.info.source == .screen ? Self.screenKeyframeInterval : Self.keyframeInterval
        turn.media(.record(RecordedStreamDescription(id: stream, track: id, keyframeInterval: interval)))
    }

    /// Reports that a track is not recorded: once, no matter how often it is tried again and for which reason it fails then.
    private mutating func refuse(_ track: RoomTrack, _ refusal: Refusal, _ turn: inout RoomTurn) {
        if refusal.reason.isTemporary, !isAnyWaiting { lastTry = turn.now }
        let former = refused.updateValue(refusal, forKey: track.id)
        guard former?.recording != refusal.recording || former?.reason.isTemporary != refusal.reason.isTemporary else {
            return
        }
        turn.recording(.refused(recording: refusal.recording, track.info, refusal.reason))
        turn.log(
            .recording(
                RecordingEvent(
                    .failed, recording: refusal.recording, track: track.info.sid, reason: refusal.reason.rawValue)))
    }

    /// The recorder has ended a stream because the disk is full, and reported that itself: the recording tries the track again.
    mutating func giveUp(_ stream: SubscriptionID, _ turn: inout RoomTurn) {
        for index in active.indices {
            guard let track = active[index].streams.first(where: { $0.value == stream })?.key else { continue }
            active[index].streams[track] = nil
            turn.endRecordedTrack(stream)
            if !isAnyWaiting { lastTry = turn.now }
            refused[track] = Refusal(recording: active[index].info.sid, reason: .diskFull)
            return
        }
    }

    /// The obstacle to recording the track, regardless of what else is recorded.
    private func obstacle(to track: RoomTrack, _ state: RoomState) -> RecordingRefusal? {
        // Clients of LiveKit's protocol state it for each track, those of martlet.v1 for all.
        if state.roster[track.publisher]?.info.encrypts == true || track.info.details.encryption != .none {
            return .endToEndEncrypted
        }
        guard track.description.formats.contains(where: { $0.codec != .otherAudio }) else {
            return .codecNotRecordable
        }
        return nil
    }
}

// MARK: - By policy

extension Recordings {
    /// A track was added, or its source changed: it is recorded only if the rules demand it. true: a recording has begun because of it.
    mutating func trackChanged(_ id: TrackID, _ state: inout RoomState, _ turn: inout RoomTurn) -> Bool {
        // A backup encoding has the same content as its track, so it is not recorded as well.
        guard let track = state.routing[id], track.main == nil else { return false }
        endUnwanted(track, state.policy, &turn)
        if byPolicy == nil, isWantedByPolicy(track, state.policy) {
            _ = begin(RecordingScope(), isByPolicy: true, RecordingOptions(), state.policy, &turn)
            return true
        }
        recordIfWanted(id, &state, &turn)
        return false
    }

    /// The policy's recording rules have changed; true: they end the recording that the policy began.
    mutating func rulesChanged(_ policy: RoomPolicy, _ turn: inout RoomTurn) -> Bool {
        isPolicyOverruled = false
        guard policy.recording != .fromStart, let info = byPolicy else { return false }
        return end(info.sid, &turn)
    }

    /// Ends what the policy excludes, and begins a recording if the policy demands one.
    mutating func follow(_ state: RoomState, _ turn: inout RoomTurn) -> Bool {
        for track in tracks.compactMap({ state.routing[$0] }) { endUnwanted(track, state.policy, &turn) }
        let published = state.roster.sessions.flatMap { state.routing.tracks(of: $0) }
        guard byPolicy == nil,
            published.contains(where: { state.routing[$0].map { isWantedByPolicy($0, state.policy) } ?? false })
        else { return false }
        _ = begin(RecordingScope(), isByPolicy: true, RecordingOptions(), state.policy, &turn)
        return true
    }

    /// Removes a track from its recording if the policy no longer permits that recording to have it.
    private mutating func endUnwanted(_ track: RoomTrack, _ policy: RoomPolicy, _ turn: inout RoomTurn) {
        for index in active.indices {
            guard let stream = active[index].streams[track.id],
                !active[index].info.scope.bounded(by: policy).contains(track.info)
            else { continue }
            active[index].streams[track.id] = nil
            turn.endRecordedTrack(stream)
            return
        }
    }

    /// Whether a recording must begin because of the track.
    private func isWantedByPolicy(_ track: RoomTrack, _ policy: RoomPolicy) -> Bool {
        policy.recording == .fromStart && policy.topology == .routed && !isPolicyOverruled
            && !isRecorded(track.id) && RecordingScope().bounded(by: policy).contains(track.info)
    }
}

extension RecordingInfo {
    /// As others see it: without what the policy excludes.
    fileprivate func bounded(by policy: RoomPolicy) -> RecordingInfo {
        var info = self
        info.scope = info.scope.bounded(by: policy)
        return info
    }
}
