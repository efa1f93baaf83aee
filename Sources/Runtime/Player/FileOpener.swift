import NetworkIO
import Primitives
import Synchronization

/// A thread that opens files: what an index of many megabytes takes must hold up neither a playback nor a call.
final class FileOpener: Sendable {
    private let wake: WakeSignal
    private let jobs: Mailbox<@Sendable () -> Void>
    private let stopping = Mutex(false)

    /// Files that wait to be opened; whoever asks for more is told to come back.
    static let maximumWaiting = 32
    private let waiting = Mutex(0)

    init() throws(SystemError) {
        wake = try WakeSignal()
        jobs = Mailbox(wake: wake)
    }

    /// Runs `body` on the thread; nil where too much waits.
    func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result? {
        let admitted = waiting.withLock { waiting in
            guard waiting < Self.maximumWaiting else { return false }
            waiting += 1
            return true
        }
        guard admitted else { return nil }
        defer { waiting.withLock { $0 -= 1 } }
        return await withCheckedContinuation { continuation in
            let isPosted = jobs.post { continuation.resume(returning: body()) }
            if !isPosted { continuation.resume(returning: nil) }
        }
    }

    /// The thread's loop, until `stop`.
    func loop() {
        Scheduling.yieldCurrentThread()
        guard let poller = try? Poller(), (try? poller.add(wake.descriptor)) != nil else {
            preconditionFailure("the player cannot wait for files to open")
        }
        var taken: [@Sendable () -> Void] = []
        while true {
            let now = MonotonicClock.now()
            if poller.isReady(wake.descriptor, of: poller.wait(until: now + .seconds(60), now: now)) { wake.clear() }
            jobs.drain(into: &taken)
            for job in taken { job() }
            taken.removeAll(keepingCapacity: true)
            if stopping.withLock({ $0 }) { return }
        }
    }

    func stop() {
        stopping.withLock { $0 = true }
        wake.signal()
    }
}
