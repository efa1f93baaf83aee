import MediaControl
import Rooms
import TestSupport
import Testing

@testable import RoomService

@Suite("Recordings of the service")
struct RecordingServiceTests {
    /// A recorder with room for everything.
    private struct Books: RecordingPlane {
        var admission: RecordingAdmission { RecordingAdmission() }
        func apply(_ effect: RecordingEffect, room: String, roomSID: String) {}
    }

    @Test(
        "A stream that the recorder gives up ends on its worker, also while that hangs; a failed write, after which the recorder goes on by itself, ends none"
    )
    func givenUp() async throws {
        let plane = FakePlane()
        let service = RoomHost(media: plane, recorder: Books())
        _ = try await service.joinPublisher(request("ada"), offer: ClientDescriptions().offer([.video("0")]))
        let recording = try await service.startRecording(RecordingScope(), options: RecordingOptions(), in: "R")
        let stream = try #require(
            plane.consumeCommands().compactMap { if case .record(let stream) = $0 { stream.id } else { nil } }.first)
        let room = try #require(await service.listRooms().first)
        await service.recordingHappened(
            RecordingEvent(.failed, recording: recording.sid, track: "TR_1", reason: "disk_full"), room: "R",
            roomSID: room.sid)
        #expect(plane.consumeCommands().isEmpty)
        plane.setHangs(true)
        await service.recorderGaveUp(stream, room: "R")
        #expect(plane.consumeCommands() == [.endRecording(stream)])
    }
}
