import MediaControl
import Primitives
import Testing

@testable import MediaEngine

@Suite("Changes of the dominant speaker")
struct DominantSpeakerTests {
    @Test("In a large room the videos of 32 subscribers are evaluated in each millisecond, until all were")
    func spread() throws {
        let harness = try EngineHarness()
        let engine = harness.engine
        harness.apply(.addRoom(Session.room))
        let speaker = harness.addClient(room: Session.room, profile: .publishOnly, connect: false)
        harness.apply(.addTrack(Session.audio(1, of: speaker)))
        var policy = DownlinkPolicy()
        policy.maximumVideos = 1
        let viewers = (0..<100).map { _ in
            let viewer = harness.addClient(room: Session.room, connect: false)
            harness.apply(.setDownlinkPolicy(viewer.id, policy))
            return viewer
        }
        /// When each viewer's videos are evaluated next.
        func looks() -> [MonotonicTime] {
            viewers.compactMap { viewer in
                guard let peer = engine.tables.peerIndex[viewer.id.rawValue] else { return nil }
                return engine.tables.peers[peer].pointee.downlink?.pointee.nextDecision
            }
        }
        #expect(looks() == Array(repeating: .distantFuture, count: 100))
        guard let room = engine.tables.roomIndex[Session.room.rawValue] else {
            Issue.record("the room is not there")
            return
        }
        engine.dominantChanged(in: room, to: TrackID(1), at: harness.now)
        let delays = looks().map { ($0 - harness.now).milliseconds }
        let counts = Dictionary(grouping: delays) { $0 }.mapValues(\.count)
        #expect(counts == [0: 32, 1: 32, 2: 32, 3: 4])
    }
}
