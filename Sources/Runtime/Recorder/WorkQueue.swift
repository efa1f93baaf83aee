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

    /// There is something to do for a recording.
    func post(_ recording: String) { _ = orders.post(recording) }

    /// Has `run` look at its work now.
    func wake() { loop.wake.signal() }

    /// Ends `run`. What is not done stays pending until the next start.
    func stop() { loop.stop() }

    /// Whether the work in hand should be left.
    var mustStop: Bool { loop.mustStop }

    /// What was posted since the last time, each once: while a long file is written, others of the same recording are finished.
    func takePosted() -> [String] {
        var taken: [String] = []
        orders.drain(into: &taken)
        var known: Set<String> = []
        return taken.filter { known.insert($0).inserted }
    }

    /// Calls `work` on this thread until it is to stop: when something was posted, and at the moment that `work` has given, if any.
    func run(_ work: () -> MonotonicTime?) { loop.run(work) }
}
