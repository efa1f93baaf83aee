import Primitives
public import Rooms

// Playbacks: the player opens a file, the room lets it in as a participant, the player sends it.

extension RoomService {
    /// Plays a file that the player has opened into a room that there is. `request` names its formats.
    public func startPlayback(
        _ request: PlaybackRequest, of file: OpenedFile, in name: String
    ) async throws(RoomError) -> PlaybackInfo {
        let hosted = try hosted(named: name)
        guard let player else {
            throw counted(RoomError(.playbackDisabled, "the server plays no files"))
        }
        do throws(RoomError) {
            guard drain == nil, !isEnding else { throw RoomError(.draining, "the server is about to end") }
            try bans.check(request.identity, room: name, now: media.now())
            guard nameBySession.count < configuration.maxParticipants else {
                throw RoomError(.overloaded, "participant limit of the server reached", retryAfter: .seconds(10))
            }
        } catch {
            throw counted(error)
        }
        let info = try await step(hosted) { (room, turn) throws(RoomError) -> PlaybackInfo in
            let (session, info) = try room.startPlayback(request, turn: &turn)
            self.nameBySession[session] = room.name
            return info
        }
        // Somebody may have removed it while its worker was told.
        guard hosted.room.hasPlayback(info.sid) else {
            throw counted(RoomError(.playbackNotFound, "the playback was ended before it began"))
        }
        // Its worker has the tracks now; packets that came earlier would be of nobody.
        player.begin(info, of: file, room: name, roomSID: hosted.room.sid, worker: hosted.worker)
        return info
    }

    /// Ends a playback: through the API, or because the player came to the file's end. A room that ended meanwhile has none.
    public func endPlayback(
        _ sid: String, _ end: PlaybackEnd, room name: String
    ) async throws(RoomError) {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) in
            try room.endPlayback(sid, end, turn: &turn)
        }
    }
}
