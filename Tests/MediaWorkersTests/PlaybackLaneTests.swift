import Cryptography
import MediaControl
import MediaEngine
import Primitives
import Testing

@testable import MediaWorkers

@Suite("What is played into a worker's rooms")
struct PlaybackLaneTests {
    @Test("An empty feed is looked at every 10 ms, one that rests once a second, and at once when its rest is over")
    func rest() throws {
        let engine = try WorkerEngine(configuration: EngineConfiguration(), certificate: .selfSigned(), seed: 7)
        let feed = PlaybackFeed(peer: PeerID(1), capacity: 8_192)
        var lane = PlaybackLane()
        let now = MonotonicTime(milliseconds: 1_000)
        var deadlines: [MonotonicTime] = []
        for (isResting, milliseconds) in [(false, 0), (true, 10), (false, 20)] as [(Bool, Int64)] {
            feed.isResting = isResting
            // Whoever ends a rest attaches the feed once more.
            if !isResting, !lane.attach(feed) { Issue.record("there is room for one feed") }
            deadlines.append(lane.nextDeadline)
            lane.play(into: engine, at: now + .milliseconds(milliseconds))
            deadlines.append(lane.nextDeadline)
        }
        let resting: [MonotonicTime] = [now + .milliseconds(10), now + .milliseconds(1_010)]
        #expect(deadlines == [.zero, now + .milliseconds(10)] + resting + [.zero, now + .milliseconds(30)])
    }

    @Test("A feed that is closed while it rests is dropped")
    func closed() throws {
        let engine = try WorkerEngine(configuration: EngineConfiguration(), certificate: .selfSigned(), seed: 7)
        let feed = PlaybackFeed(peer: PeerID(1), capacity: 8_192)
        var lane = PlaybackLane()
        if !lane.attach(feed) { Issue.record("there is room for one feed") }
        feed.isResting = true
        lane.play(into: engine, at: .zero)
        feed.close()
        lane.play(into: engine, at: MonotonicTime(milliseconds: 1_000))
        let deadline = lane.nextDeadline
        #expect(deadline == .distantFuture)
    }
}
