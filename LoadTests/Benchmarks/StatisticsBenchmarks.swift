import MediaControl
import MediaEngine
import Primitives

/// What the quality of a large room's members costs the media thread every five seconds: all at once, and in the parts that the worker requests.
enum StatisticsBenchmarks {
    /// Entries of one part, as `MediaWorker` collects them.
    private static let part = 128

    static func run(_ runner: Runner) throws {
        guard runner.wants("statistics") else { return }
        let room = try EngineRoom(subscribers: 900)
        for frame in room.frames(30, sizes: ForwardBenchmarks.sizes) {
            room.pass(.milliseconds(33))
            room.forward(frame)
        }
        runner.time("statistics: a webinar of 900 at once", operations: 1) {
            consume(room.engine.report(.room(Descriptions.room))?.peers.count)
        }
        runner.time("statistics: 128 entries", operations: 1) {
            consume(room.engine.report(.room(Descriptions.room), from: 100, limit: part)?.next)
        }
    }
}
