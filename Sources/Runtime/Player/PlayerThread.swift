import MediaWorkers
import NetworkIO
import Playback
import Primitives
import RoomService
import Rooms

/// The thread that reads the files of all playbacks. Its reads may block as long as the disk does: playbacks are then late, calls are not.
final class PlayerThread: Sendable {
    /// Orders for the thread, in sequence.
    enum Order: Sendable {
        case begin(PlaybackInfo, OpenedTracks, PlaybackSummary, worker: Int)
        case change(playback: String, PlaybackChange)
        case end(playback: String)
        case stop
    }

    /// A playback that ended by itself.
    struct News: Sendable {
        var playback: String
        var room: String
        var end: PlaybackEnd
    }

    /// Feeds are filled this often; ten times within `RunningPlayback.ahead`.
    private static let fillInterval = TimeSpan.milliseconds(20)
    /// Without playbacks, and while all are paused, orders wake it.
    private static let idleInterval = TimeSpan.seconds(60)

    private let wake: WakeSignal
    private let orders: Mailbox<Order>
    private let books: PlaybackBooks
    private let workers: MediaWorkerPool
    private let news: AsyncStream<News>.Continuation
    private let seed: UInt64

    init(
        workers: MediaWorkerPool, books: PlaybackBooks, news: AsyncStream<News>.Continuation, seed: UInt64
    ) throws(SystemError) {
        wake = try WakeSignal()
        orders = Mailbox(wake: wake)
        self.workers = workers
        self.books = books
        self.news = news
        self.seed = seed
    }

    func post(_ order: Order) { _ = orders.post(order) }

    /// Runs until it is stopped.
    func run() {
        Scheduling.yieldCurrentThread()
        guard let poller = try? Poller(), (try? poller.add(wake.descriptor)) != nil else {
            preconditionFailure("the player cannot wait for its orders")
        }
        var random = RandomSource(seed: seed)
        var running: [RunningPlayback] = []
        var taken: [Order] = []
        while true {
            let now = MonotonicClock.now()
            let deadline = now + (running.allSatisfy(\.isResting) ? Self.idleInterval : Self.fillInterval)
            let ready = poller.wait(until: deadline, now: now)
            if poller.isReady(wake.descriptor, of: ready) { wake.clear() }
            orders.drain(into: &taken)
            for order in taken {
                guard carryOut(order, &running, &random) else {
                    for playback in running { playback.close() }
                    return
                }
            }
            taken.removeAll(keepingCapacity: true)
            for playback in running {
                let now = MonotonicClock.now()
                playback.fill(at: now)
                books.update(playback.summary(at: now))
            }
            finish(&running)
        }
    }

    /// False: stop.
    private func carryOut(
        _ order: Order, _ running: inout [RunningPlayback], _ random: inout RandomSource
    ) -> Bool {
        let now = MonotonicClock.now()
        switch order {
        case .begin(let info, let opened, let summary, let worker):
            let playback = RunningPlayback(info, opened, summary, worker: worker, at: now, random: &random)
            play(playback)
            running.append(playback)
        case .change(let sid, let change):
            guard let playback = running.first(where: { $0.info.sid == sid }) else { break }
            let wasResting = playback.isResting
            playback.apply(change, at: now)
            if wasResting, !playback.isResting { play(playback) }
            books.update(playback.summary(at: now))
        case .end(let sid):
            guard let index = running.firstIndex(where: { $0.info.sid == sid }) else { break }
            running[index].close()
            books.end(running.remove(at: index).summary(at: now))
        case .stop: return false
        }
        return true
    }

    private func play(_ playback: RunningPlayback) {
        for feed in playback.feeds where !workers.play(feed, on: playback.worker) { feed.close() }
    }

    /// Reports playbacks that have ended; their participants then leave, which ends them here, too.
    private func finish(_ running: inout [RunningPlayback]) {
        let now = MonotonicClock.now()
        // Checked only once: workers empty feeds meanwhile, and a playback that has ended only at a second check would leave without its end being reported.
        let over = running.filter { $0.isOver(at: now) }
        guard !over.isEmpty else { return }
        for playback in over {
            let summary = playback.summary(at: now)
            if playback.hasFailed { books.countFailure() }
            playback.close()
            books.end(summary)
            news.yield(
                News(playback: summary.sid, room: summary.room, end: playback.hasFailed ? .failed : .finished))
        }
        running.removeAll { playback in over.contains { $0 === playback } }
    }
}
