import MediaControl
import MediaWorkers
import Primitives
public import Rooms

/// Captures of participants' packets in clear text. Only where the configuration permits them; the participant is told, and the event log has who asked.
extension RoomService {
    /// Captures that are kept at once, those that go on and those that wait to be fetched: with `CaptureRequest.sizes` a bound of memory.
    static let maxCaptures = 4
    /// How often workers are asked for what they copied.
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
        guard captures.count < Self.maxCaptures else {
            throw counted(
                RoomError(
                    .rateLimited, "the server keeps as many captures as it may; delete one", retryAfter: .seconds(10)))
        }
        var turn = newTurn()
        let capture = RunningCapture(
            request, of: info, room: name, id: Room.captureID(turn: &turn), at: media.now(),
            wallClock: media.wallClockMilliseconds())
        captures.append(capture)
        await follow(capture)
        captureStart.yield()
        return capture.info
    }

    /// The captures of a participant, named by sid or identity, oldest first; it may have left since.
    public func captures(of participant: String, in room: String) -> [CaptureInfo] {
        captures.map(\.info).filter { $0.room == room && ($0.participant == participant || $0.identity == participant) }
    }

    /// The file of a capture; nil where there is no such capture.
    public func captureFile(_ id: String) -> [UInt8]? { captures.first { $0.info.id == id }?.bytes }

    /// Stops a capture and forgets what was captured.
    public func deleteCapture(_ id: String) async {
        guard let capture = captures.first(where: { $0.info.id == id }) else { return }
        if capture.info.end == nil { await finish(capture, .stopped) }
        captures.removeAll { $0 === capture }
    }

    /// Fetches what workers copied for captures that go on; whether any still does.
    func continueCaptures() async -> Bool {
        for capture in captures where capture.info.end == nil { await collect(capture) }
        return captures.contains { $0.info.end == nil }
    }

    private func collect(_ capture: RunningCapture) async {
        guard let hosted = rooms[capture.info.room], hosted.room.find(capture.info.participant) != nil else {
            return await finish(capture, .left)
        }
        await add(to: capture, hosted)
        guard capture.info.end == nil else { return await finish(capture, nil) }
        await attach(capture, hosted)
    }

    /// Adds what was copied. A worker that hangs has copied nothing.
    private func add(to capture: RunningCapture, _ hosted: HostedRoom) async {
        let report = try? await media.report(.captures(capture.peers), on: hosted.worker)
        capture.add(report?.captures ?? [], at: media.now(), wallClock: media.wallClockMilliseconds())
    }

    /// Begins to copy on connections that are new.
    private func attach(_ capture: RunningCapture, _ hosted: HostedRoom) async {
        guard let session = hosted.room.find(capture.info.participant) else { return }
        let settings = CaptureSettings(keepsPayload: capture.info.keepsPayload)
        let commands = hosted.room.connections(of: session).map(\.peer).filter { capture.add($0) }
            .map { MediaCommand.setCapture($0, settings) }
        if !commands.isEmpty { try? await media.apply(commands, on: hosted.worker) }
    }

    /// Ends a capture for `reason`, where it has not ended by itself, and lets go of its connections.
    private func finish(_ capture: RunningCapture, _ reason: CaptureInfo.End?) async {
        let hosted = rooms[capture.info.room]
        if let reason {
            if let hosted { await add(to: capture, hosted) }
            capture.end(reason, wallClock: media.wallClockMilliseconds())
        }
        guard let hosted else { return }
        try? await media.apply(capture.peers.map { .setCapture($0, nil) }, on: hosted.worker)
        await step(hosted) { $0.noteCapture(capture.notice, of: capture.info.participant, turn: &$1) }
    }

    private func follow(_ capture: RunningCapture) async {
        guard let hosted = rooms[capture.info.room] else { return }
        await step(hosted) { $0.noteCapture(capture.notice, of: capture.info.participant, turn: &$1) }
        await attach(capture, hosted)
    }
}
