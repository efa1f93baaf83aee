import MediaControl
public import Primitives
public import Rooms

// Recordings: the room decides what is recorded, the recorder writes it and tells what happens.

extension RoomService {
    /// Begins a recording of a room, or of a participant or a track in it.
    public func startRecording(
        _ scope: RecordingScope, options: RecordingOptions = RecordingOptions(), in name: String
    ) async throws(RoomError) -> RecordingInfo {
        let hosted = try hosted(named: name)
        if let refusal = recordingRefusal { throw counted(refusal.error) }
        return try await step(hosted) { (room, turn) throws(RoomError) -> RecordingInfo in
            try room.startRecording(scope, options: options, turn: &turn)
        }
    }

    /// Why nothing further can be recorded now; nil: it can.
    var recordingRefusal: RecordingRefusal? {
        guard let recorder else { return .disabled }
        return recorder.refusal
    }

    /// Ends a recording that is in progress.
    public func stopRecording(_ sid: String, in name: String) async throws(RoomError) {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) in
            try room.stopRecording(sid, turn: &turn)
        }
    }

    /// The recorder tells what happened to a recording; its room may have ended meanwhile, or another one of the name may be there.
    public func recordingHappened(_ event: RecordingEvent, room name: String, roomSID: String) {
        if let hosted = rooms[name], hosted.room.sid == roomSID {
            record(.recording(event), in: hosted)
        } else {
            write(
                .recording(event), room: name, roomSID: roomSID, sequence: 0, at: media.wallClockMilliseconds())
        }
    }

    /// The recorder needs a keyframe of a track.
    public func requestKeyframe(of track: TrackID, room name: String) async {
        guard let hosted = rooms[name] else { return }
        try? await media.apply([.requestKeyframe(track)], on: hosted.worker)
    }
}
