import CInstruments
import Primitives

/// Memory of the server's side of a peer, as the allocator counts it.
enum MemoryBenchmarks {
    static let peers = 200

    static func run(_ runner: Runner) throws {
        guard runner.wants("memory") else { return }
        // The first room allocates what the libraries never free.
        _ = try EngineRoom(subscribers: 2)
        runner.note("memory: kB a subscriber that just joined", try subscriber(seconds: 0))
        runner.note("memory: kB a subscriber of 1 Mbit/s", try subscriber(seconds: 3))
        runner.note("memory: kB a publish-only member, no tracks", try publisher(tracks: false))
        runner.note(
            "memory: kB its two tracks before they send", try publisher(tracks: true) - publisher(tracks: false))
    }

    private static func subscriber(seconds: Int) throws -> Double {
        let room = try EngineRoom(subscribers: 0)
        // What the track keeps for everybody belongs to the room, not to subscribers: it is allocated before they join.
        play(room, seconds)
        let before = cinstruments_live_bytes()
        try room.join(peers)
        play(room, seconds)
        room.forgetClients()
        return Double(cinstruments_live_bytes() - before) / Double(peers) / 1_000
    }

    private static func publisher(tracks: Bool) throws -> Double {
        let room = try EngineRoom(subscribers: 0)
        let before = cinstruments_live_bytes()
        room.addPublishers(peers, from: 2, tracks: tracks)
        room.forgetClients()
        return Double(cinstruments_live_bytes() - before) / Double(peers) / 1_000
    }

    private static func play(_ room: EngineRoom, _ seconds: Int) {
        for frame in room.frames(seconds * 30, sizes: ForwardBenchmarks.sizes) {
            room.pass(.milliseconds(33))
            room.forward(frame)
        }
    }
}
