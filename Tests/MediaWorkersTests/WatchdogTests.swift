import Dispatch
import MediaControl
import NetworkIO
import Primitives
import TestSupport
import Testing

@testable import MediaWorkers

@Suite("Watchdog", .timeLimit(.minutes(1)))
struct WatchdogTests {
    private static func second(_ seconds: Int64) -> MonotonicTime {
        MonotonicTime(milliseconds: 10_000 + seconds * 1_000)
    }

    @Test("A loop without a turn for five seconds hangs, and recovers with its next turn; other loops are not affected")
    func patience() {
        var watchdog = Watchdog(loops: 2)
        var changes: [[Watchdog.Change]] = []
        for second in 0..<9 as Range<Int64> {
            // The first loop stands still from second 1 on, and turns again at 8.
            let turns: [UInt64] = [second == 0 ? 1 : second < 8 ? 2 : 3, UInt64(second)]
            changes.append(watchdog.look(turns, at: Self.second(second)))
        }
        #expect(changes[..<6].allSatisfy(\.isEmpty) && changes[6] == [.hangs(0)] && changes[7].isEmpty)
        #expect(changes[8] == [.isBack(0, after: .seconds(6))])
        #expect(watchdog.hung.isEmpty)
    }

    @Test("No loop hangs because the process was stopped: time between checks does not count")
    func stoppedProcess() {
        var watchdog = Watchdog(loops: 1)
        for second in [0, 1, 60, 120] as [Int64] { #expect(watchdog.look([7], at: Self.second(second)).isEmpty) }
        #expect(watchdog.look([8], at: Self.second(121)).isEmpty)
    }

    /// Holds a worker's loop in the middle of a job until it is released.
    private struct Block {
        private let gate = DispatchSemaphore(value: 0)

        func hold(_ worker: MediaWorker) async {
            await withCheckedContinuation { continuation in
                let isTaken = worker.post { _ in
                    continuation.resume()
                    gate.wait()
                }
                #expect(isTaken)
            }
        }

        func release() { gate.signal() }
    }

    /// Looks once a second of made-up time, during which every worker but number 0 turns.
    private static func look(_ pool: MediaWorkerPool, seconds: Range<Int64>) async {
        for second in seconds {
            for worker in pool.workers.dropFirst() { _ = await worker.statistics() }
            pool.look(at: Self.second(second))
        }
    }

    @Test(
        "Callers that wait for a hanging worker get an error, later callers at once; commands are executed afterwards")
    func hungWorker() async throws {
        let pool = try MediaWorkerPoolTests.pool(workers: 2)
        try await pool.apply([.addRoom(RoomID(1))], on: 0)
        _ = await pool.statistics()
        let block = Block()
        await block.hold(pool.workers[0])
        let waiting = Task { () -> Bool in
            do throws(WorkerHangs) {
                try await pool.apply([.addRoom(RoomID(2))], on: 0)
                return false
            } catch {
                return true
            }
        }
        while pool.calls[0].count == 0 { try await giveWay() }
        await Self.look(pool, seconds: 0..<6)
        #expect(await waiting.value, "given up")
        #expect(pool.hungWorkers == [.init(index: 0, stillFor: .seconds(5))])
        await #expect(throws: WorkerHangs.self) { try await pool.report(.room(RoomID(1)), on: 0) }
        await #expect(throws: WorkerHangs.self) { try await pool.apply([.addRoom(RoomID(3))], on: 0) }
        for _ in 0..<3 { #expect(pool.leastLoadedWorker()?.index == 1) }
        let statistics = await pool.statistics()
        #expect(statistics.map(\.hangs) == [true, false])
        #expect(statistics[0].rooms == 1, "as last known")

        block.release()
        #expect(await pool.workers[0].statistics().rooms == 3, "what was requested is carried out")
        pool.look(at: Self.second(7))
        #expect(pool.hungWorkers.isEmpty)
        #expect(await pool.statistics().map(\.hangs) == [false, false])
        await pool.stop()
    }

    @Test("If every worker hangs no room is placed, and the pool stops without them")
    func allHang() async throws {
        let pool = try MediaWorkerPoolTests.pool(workers: 1)
        let block = Block()
        await block.hold(pool.workers[0])
        await Self.look(pool, seconds: 0..<7)
        #expect(pool.leastLoadedWorker() == nil)
        await pool.stop()
        block.release()
    }

    /// How soon is not looked at: the time limit of the suite ends the wait for a loop that takes no turns.
    @Test("An idle loop goes on taking turns, so that it does not seem to hang")
    func idle() async throws {
        let pool = try MediaWorkerPoolTests.pool(workers: 1)
        let turns = pool.workers[0].loopTurns
        // Nothing is asked of it meanwhile.
        while pool.workers[0].loopTurns < turns + 2 { try await Task.sleep(for: .milliseconds(50)) }
        await pool.stop()
    }
}
