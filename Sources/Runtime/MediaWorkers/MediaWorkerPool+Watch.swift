import Logging
public import MediaControl
import NetworkIO
public import Primitives
import Synchronization

// Hanging workers: how they are detected and reported, and how to query a worker without waiting for a hanging one.

extension MediaWorkerPool {
    /// A worker whose loop hangs.
    public struct HungWorker: Sendable, Hashable {
        public var index: Int
        /// How long it has not taken a turn.
        public var stillFor: TimeSpan

        /// Worker `index`.
        public init(index: Int, stillFor: TimeSpan) {
            self.index = index
            self.stillFor = stillFor
        }
    }

    /// The workers that hung at the last check.
    public var hungWorkers: [HungWorker] {
        watchdog.withLock { $0.hung.map { HungWorker(index: $0.index, stillFor: $0.stillFor) } }
    }

    /// Whether worker `index` hangs.
    public func hangs(_ index: Int) -> Bool { calls[index].hangs }

    /// Checks the workers until the task is cancelled. Call once.
    public func watch() async {
        while (try? await Task.sleep(for: .nanoseconds(Watchdog.interval.nanoseconds))) != nil {
            look(at: MonotonicClock.now())
        }
    }

    /// Checks whether each worker's loop has taken a turn since the last check.
    func look(at now: MonotonicTime) {
        let turns = workers.map(\.loopTurns)
        for change in watchdog.withLock({ $0.look(turns, at: now) }) {
            switch change {
            case .hangs(let index):
                calls[index].set(hangs: true)
                logger.error(
                    "a media worker is not responding; its rooms are stalled, and new rooms go to other workers",
                    ["worker": .number(index), "seconds": .number(Int(Watchdog.patience.seconds))])
            case .isBack(let index, let pause):
                calls[index].set(hangs: false)
                logger.warning(
                    "a media worker responds again",
                    ["worker": .number(index), "seconds": .number(Int(pause.seconds))])
            }
        }
    }

    /// Makes a worker carry out commands in order, and returns when they have been. A worker that hangs carries them out when it recovers, before
    /// all later ones, and the caller gets an error without waiting for that.
    public nonisolated(nonsending) func apply(
        _ commands: [MediaCommand], on index: Int
    ) async throws(WorkerHangs) {
        let last = postBeginning(of: commands, on: index)
        _ = try await call(index, evenIfHung: true) { $0.apply(last) }
    }

    /// Like `apply`, but returns at once.
    public func post(_ commands: [MediaCommand], on index: Int) {
        let last = postBeginning(of: commands, on: index)
        // False after the worker's end, when it no longer serves clients.
        _ = workers[index].post { $0.apply(last) }
    }

    /// The number of commands that a worker carries out without checking the time: at some 20 us to close a peer (estimated), this takes about as long as jobs
    /// may delay packets.
    private static let commandsAtOnce = 16

    /// Posts a long list of commands in parts, between which media has its turns; returns the last part. The end of a room of a thousand would
    /// delay the packets of all others by tens of milliseconds.
    private func postBeginning(of commands: [MediaCommand], on index: Int) -> [MediaCommand] {
        var rest = commands[...]
        while rest.count > Self.commandsAtOnce {
            let part = Array(rest.prefix(Self.commandsAtOnce))
            // After the worker's end the caller has to run the rest.
            guard workers[index].post({ $0.apply(part) }) else { break }
            rest = rest.dropFirst(Self.commandsAtOnce)
        }
        return Array(rest)
    }

    /// Queries a worker.
    public nonisolated(nonsending) func ask<Reply: Sendable>(
        _ index: Int, _ question: @escaping @Sendable (isolated MediaWorker) -> Reply
    ) async throws(WorkerHangs) -> Reply {
        try await call(index, evenIfHung: false, question)
    }

    private nonisolated(nonsending) func call<Reply: Sendable>(
        _ index: Int, evenIfHung: Bool, _ body: @escaping @Sendable (isolated MediaWorker) -> Reply
    ) async throws(WorkerHangs) -> Reply {
        let calls = calls[index], worker = workers[index]
        guard evenIfHung || !calls.hangs else { throw WorkerHangs() }
        let reply: Reply? = await withCheckedContinuation { continuation in
            let pending = PendingCall(continuation)
            let number = calls.begin { pending.finish(nil) }
            let isTaken = worker.post { worker in
                calls.end(number)
                pending.finish(body(worker))
            }
            if !isTaken {
                calls.end(number)
                pending.finish(nil)
            }
        }
        if let reply { return reply }
        // After its end, a worker is queried on the caller's thread.
        guard worker.hasEnded else { throw WorkerHangs() }
        return await worker.perform(body)
    }

    /// The report of `scope`; nil for a room that is not on this worker. Collected in parts, with turns between: the thousand peers of a
    /// large room would delay packets by milliseconds.
    public nonisolated(nonsending) func report(
        _ scope: ReportScope, on index: Int
    ) async throws(WorkerHangs) -> MediaReport? {
        guard let first = try await ask(index, { $0.part(of: scope, from: 0) }) else { return nil }
        var whole = first.part, start = first.next
        while let from = start, let more = try await ask(index, { $0.part(of: scope, from: from) }) {
            whole.add(more.part)
            start = more.next
        }
        whole.sort()
        return whole
    }

    /// Counters and gauges of all workers by index; for one that hangs, the last known ones.
    public func statistics() async -> [WorkerStatistics] {
        for worker in workers {
            let index = worker.index
            do throws(WorkerHangs) {
                let statistics = try await ask(index) { $0.statistics() }
                lastStatistics.withLock { $0[index] = statistics }
            } catch {
                lastStatistics.withLock { $0[index].hangs = true }
            }
        }
        return lastStatistics.withLock { $0 }
    }
}
