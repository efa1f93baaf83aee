import MediaControl
import MediaWorkers
public import Primitives
public import Rooms

// What workers measure, copy and record, with the names of the control plane.

extension RoomHost {
    /// One room's media statistics with names.
    public func report(onRoom name: String) async throws(RoomError) -> RoomReport {
        let hosted = try hosted(named: name)
        return RoomReport(hosted.room, try await reported(.room(hosted.room.id), on: hosted.worker))
    }

    /// The last decisions about what one participant, named by sid or identity, is sent, preceded by those that were in force every 5 s, and the
    /// estimates of its path; oldest first.
    public func decisions(about participant: String, in name: String) async throws(RoomError) -> DecisionsReport {
        let hosted = try hosted(named: name)
        guard let session = hosted.room.find(participant), let info = hosted.room.participant(session) else {
            throw counted(RoomError(.participantNotFound, "there is no such participant"))
        }
        let peers = hosted.room.connections(of: session).map(\.peer)
        let downlinks = try await reported(.downlinks(peers, withHistory: true), on: hosted.worker).downlinks
        let decisions = downlinks.flatMap(\.decisions).sorted { $0.time < $1.time }.map {
            named($0, of: session, in: hosted.room)
        }
        let seen = hosted.stays.seenDecisions(of: info.sid).map { one in
            var report = named(one.record, of: session, in: hosted.room)
            (report.at, report.track) = (one.at, one.track)
            return report
        }
        let estimates = downlinks.flatMap(\.estimates).sorted { $0.age > $1.age }
        let now = media.wallClockMilliseconds()
        return DecisionsReport(
            decisions: SeenDecision.before(decisions, seen) + decisions,
            estimates: estimates.map {
                EstimateReport(at: now - $0.age.milliseconds, least: $0.least, most: $0.most)
            })
    }

    /// The state of a participant's network and media in the last hour, named by sid or identity; oldest first, one sample in 5 s.
    public func history(of participant: String, in name: String) throws(RoomError) -> [StaySample] {
        let hosted = try hosted(named: name)
        guard let info = hosted.room.find(participant).flatMap({ hosted.room.participant($0) }) else {
            throw counted(RoomError(.participantNotFound, "there is no such participant"))
        }
        return hosted.stays.samples(of: info.sid)
    }

    /// The state of a track or a subscription, named by its sid, in the last hour; oldest first, one sample in 5 s. Empty if the server has too many.
    public func history(ofStream sid: String, in name: String) throws(RoomError) -> [StreamSample] {
        try hosted(named: name).streams.samples(of: sid)
    }

    /// The state of a room in the last hour; oldest first, one sample in 5 s while it had members.
    public func history(ofRoom name: String) throws(RoomError) -> [RoomSample] {
        try hosted(named: name).streams.roomSamples
    }

    /// What one session is sent now, and why not more.
    public func allocation(of session: SessionID) async throws(RoomError) -> AllocationReport {
        let hosted = try hosted(of: session)
        let peers = hosted.room.connections(of: session).map(\.peer)
        var report = AllocationReport()
        for downlink in try await reported(.downlinks(peers, withHistory: false), on: hosted.worker).downlinks {
            // Of several receiving connections, the one with the least bandwidth.
            report.estimate = [report.estimate, downlink.estimate].compactMap { $0 }.min()
            report.allocated = report.allocated + downlink.allocated
            report.wanted = report.wanted + downlink.wanted
            report.videos += downlink.videos.map { named($0, of: session, in: hosted.room) }
        }
        return report
    }

    /// A worker's report; empty for a room that it does not know.
    private func reported(_ scope: ReportScope, on worker: WorkerIndex) async throws(RoomError) -> MediaReport {
        do throws(WorkerHangs) {
            return try await media.report(scope, on: worker) ?? MediaReport()
        } catch {
            throw counted(.workerHangs)
        }
    }

    private func named(_ record: DecisionRecord, of session: SessionID, in room: Room) -> DecisionReport {
        DecisionReport(
            at: media.wallClockMilliseconds() - record.age.milliseconds,
            subscription: room.subscribed(record.subscription)?.info.sid,
            track: record.track.flatMap { room.published($0)?.info.sid }, record: record,
            limits: room.bandwidth(of: session))
    }

    /// Totals and gauges.
    public func statistics() -> RoomServiceStatistics {
        var all = totals
        all.rooms = rooms.count
        all.isDraining = drain != nil || isEnding
        all.reservedConnections = capacity.reservedConnections
        all.maxConnections = configuration.maxConnections
        for hosted in rooms.all {
            let counts = hosted.room.counts
            all.participants += counts.participants
            all.publishers += counts.publishers
            all.tracks += counts.tracks
            all.subscriptions += counts.subscriptions
            all.connections += counts.connections
            all.detachedSessions += hosted.room.detachedCount
            let (whip, whep) = hosted.room.httpSessions
            all.whipSessions += whip
            all.whepSessions += whep
        }
        return all
    }
}

// MARK: - Network quality, 0 to 5 per participant

extension RoomHost {
    /// Samples every room with members, keeps the samples for an hour, and reports participants whose network quality changed.
    func measureQuality() async {
        var streamsLeft = StreamLog.maxStreams
        for case let hosted? in rooms.names.map({ rooms[$0] }) {
            if hosted.room.counts.participants == 0 { hosted.streams.endStreams() }
            streamsLeft -= hosted.streams.count
        }
        for name in rooms.names {
            guard let hosted = rooms[name], hosted.room.counts.participants > 0 else { continue }
            journal.trace(hosted, at: media.wallClockMilliseconds())
            guard let statistics = try? await media.report(.room(hosted.room.id), on: hosted.worker) else { continue }
            let report = RoomReport(hosted.room, statistics), at = media.wallClockMilliseconds()
            let held = hosted.streams.count
            streamsLeft += held - hosted.streams.measure(report, at: at, upTo: held + max(0, streamsLeft))
            let changed = hosted.quality.look(at: report) { participant, conditions, downlinkLoss in
                hosted.stays.measure(participant, conditions, at: at)
                let estimate = participant.connections.compactMap(\.statistics.estimate).min()
                totals.network.add(loss: downlinkLoss, conditions, estimate: estimate)
            }
            if !changed.isEmpty { await step(hosted) { $0.updateQuality(changed, turn: &$1) } }
        }
    }
}

// MARK: - Captures

/// Captures of participants' packets in clear text. Only if the configuration permits them; the participant is notified, and the event log names who requested
/// it.
extension RoomHost {
    /// How often the copied packets are fetched from workers.
    static let captureInterval = Duration.milliseconds(200)

    /// Begins to capture a participant's packets on all its connections.
    public func startCapture(
        of participant: String, in name: String, _ request: CaptureRequest
    ) async throws(RoomError) -> CaptureInfo {
        guard configuration.allowsCaptures else {
            throw counted(
                RoomError(
                    .permissionDenied,
                    "this server permits no captures of decrypted packets (its setting rooms.allow_captures is false)"))
        }
        let hosted = try hosted(named: name)
        guard let info = hosted.room.find(participant).flatMap({ hosted.room.participant($0) }) else {
            throw counted(RoomError(.participantNotFound, "there is no such participant"))
        }
        do throws(RoomError) {
            try captures.makeRoom(at: media.now())
        } catch {
            throw counted(error)
        }
        var turn = newTurn()
        let capture = RunningCapture(
            request, of: info, in: hosted, id: Room.captureID(turn: &turn), at: media.now(),
            wallClock: media.wallClockMilliseconds())
        captures.add(capture)
        await follow(capture)
        captures.begun.raise()
        return capture.info
    }

    /// The captures of a participant, named by sid or identity, oldest first; it may have left since.
    public func captures(of participant: String, in room: String) -> [CaptureInfo] {
        captures.list(of: participant, in: room)
    }

    /// The file of a capture; nil if there is no such capture.
    public func captureFile(_ id: String) -> [UInt8]? { captures.find(id)?.bytes }

    /// Stops a capture and deletes its packets.
    public func deleteCapture(_ id: String) async {
        guard let capture = captures.find(id) else { return }
        if capture.info.end == nil { await end(capture, .stopped) }
        captures.remove(capture)
    }

    /// Fetches packets that workers copied for running captures; returns whether any is still running.
    func continueCaptures() async -> Bool {
        // A capture may end while another is collected.
        for capture in captures.running where capture.info.end == nil { await collect(capture) }
        return !captures.running.isEmpty
    }

    /// Ends the captures that began before a participant was moved.
    func endCaptures(ofMoved participant: String) async {
        for capture in captures.running where capture.info.participant == participant && capture.isOfMoved {
            await end(capture, .left)
        }
    }

    /// The room in which a capture began; nil if it has ended. Another room may have its name.
    private func room(of capture: RunningCapture) -> HostedRoom? {
        rooms[capture.info.room].flatMap { $0.room.sid == capture.roomSID ? $0 : nil }
    }

    private func collect(_ capture: RunningCapture) async {
        guard let hosted = room(of: capture), hosted.room.find(capture.info.participant) != nil else {
            return await end(capture, .left)
        }
        await add(to: capture)
        if capture.info.end == nil { await attach(capture) } else { await letGo(capture) }
    }

    /// Adds copied packets. A worker that hangs has copied nothing.
    private func add(to capture: RunningCapture) async {
        let report = try? await media.report(.captures(capture.peers), on: capture.worker)
        capture.add(report?.captures ?? [], at: media.now(), wallClock: media.wallClockMilliseconds())
    }

    /// Begins to copy on connections that are new.
    private func attach(_ capture: RunningCapture) async {
        // It may have been deleted before it began.
        guard capture.info.end == nil, let hosted = room(of: capture),
            let session = hosted.room.find(capture.info.participant)
        else { return }
        let settings = CaptureSettings(keepsPayload: capture.info.keepsPayload)
        let commands = hosted.room.connections(of: session).map(\.peer).filter { capture.add($0) }
            .map { MediaCommand.setCapture($0, settings) }
        if !commands.isEmpty { try? await media.apply(commands, on: capture.worker) }
    }

    /// Ends a capture for `reason`, unless it ends by itself or by another task at the same time.
    private func end(_ capture: RunningCapture, _ reason: CaptureInfo.End) async {
        await add(to: capture)
        capture.end(reason, at: media.now(), wallClock: media.wallClockMilliseconds())
        await letGo(capture)
    }

    /// Reports the end of a capture, once, and releases its connections.
    private func letGo(_ capture: RunningCapture) async {
        guard capture.claimEnd() else { return }
        await note(capture)
        if capture.isOfMoved { await notifyMoved(capture) }
        // Also if its room has ended: a participant that was moved continues with its connections.
        try? await media.apply(capture.peers.map { .setCapture($0, nil) }, on: capture.worker)
    }

    /// Reports the state of a capture, even if its room has ended meanwhile.
    private func note(_ capture: RunningCapture) async {
        let (notice, participant) = (capture.notice, capture.info.participant)
        guard let hosted = room(of: capture) else {
            // A pre-call check is never mentioned.
            if !capture.isOfCheck {
                record(
                    .captureChanged(participant: participant, notice), ofRoom: capture.info.room, sid: capture.roomSID)
            }
            return
        }
        await step(hosted) { $0.noteCapture(notice, of: participant, turn: &$1) }
    }

    /// Notifies a participant that was moved that it is no longer captured: it is not in the room whose log has the capture.
    private func notifyMoved(_ capture: RunningCapture) async {
        let (notice, participant) = (capture.notice, capture.info.participant)
        guard let hosted = rooms.place(of: participant, in: capture.info.room)?.hosted, hosted !== room(of: capture)
        else { return }
        await step(hosted) { $0.noteCapture(notice, of: participant, writesDown: false, turn: &$1) }
    }

    private func follow(_ capture: RunningCapture) async {
        await note(capture)
        await attach(capture)
    }
}

// MARK: - Recordings

// The room decides what is recorded, the recorder writes it and reports events.
extension RoomHost {
    /// Begins a recording of a room, or of a participant or a track in it.
    public func startRecording(
        _ scope: RecordingScope, options: RecordingOptions = RecordingOptions(), in name: String
    ) async throws(RoomError) -> RecordingInfo {
        let hosted = try hosted(named: name)
        if let refusal = recordingAdmission.refusal { throw counted(refusal.error) }
        return try await step(hosted) { (room, turn) throws(RoomError) -> RecordingInfo in
            try room.startRecording(scope, options: options, turn: &turn)
        }
    }

    /// How many more tracks can be recorded.
    var recordingAdmission: RecordingAdmission {
        recorder?.admission ?? RecordingAdmission(obstacle: .disabled)
    }

    /// Ends a recording that is in progress.
    public func stopRecording(_ sid: String, in name: String) async throws(RoomError) {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) in
            try room.stopRecording(sid, turn: &turn)
        }
    }

    /// The recorder reports an event of a recording; its room may have ended meanwhile, or another one may have its name.
    public func recordingHappened(_ event: RecordingEvent, room name: String, roomSID: String) {
        if let hosted = rooms[name], hosted.room.sid == roomSID {
            record(.recording(event), in: hosted)
        } else {
            record(.recording(event), ofRoom: name, sid: roomSID)
        }
    }

    /// The recorder has stopped recording a stream, because the disk is full.
    public func recorderGaveUp(_ stream: SubscriptionID, room name: String) async {
        guard let hosted = rooms[name] else { return }
        await step(hosted) { room, turn in room.recorderGaveUp(stream, turn: &turn) }
    }

    /// The recorder needs a keyframe of a track.
    public func requestKeyframe(of track: TrackID, room name: String) async {
        guard let hosted = rooms[name] else { return }
        try? await media.apply([.requestKeyframe(track)], on: hosted.worker)
    }
}
