import NetworkIO
import Primitives

/// A queue of recordings for one low-priority background thread.
final class WorkQueue: Sendable {
    private let loop: IdleLoop
    private let orders: Mailbox<String>

    init() throws(SystemError) {
        loop = try IdleLoop()
        orders = Mailbox(wake: loop.wake)
    }

    /// There is work for a recording.
    func post(_ recording: String) { _ = orders.post(recording) }

    /// Makes `run` check its work now.
    func wake() { loop.wake.signal() }

    /// Ends `run`. Unfinished work stays pending until the next start.
    func stop() { loop.stop() }

    /// Whether the current work should be abandoned.
    var mustStop: Bool { loop.mustStop }

    /// Removes and returns the posted recordings, each once: while a long file is written, others of the same recording are finished.
    func dequeueAll() -> [String] {
        var posted: [String] = []
        orders.drain(into: &posted)
        var known: Set<String> = []
        return posted.filter { known.insert($0).inserted }
    }

    /// Calls `work` on this thread until it is stopped: when a recording was posted, and at the time that `work` has returned, if any.
    func run(_ work: () -> MonotonicTime?) { loop.run(work) }
}
