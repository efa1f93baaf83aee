import CSoup
import Synchronization

/// A thread that runs a GLib main loop, and is the serial executor of what lives on it.
///
/// libsoup's objects may be touched from one thread only. Their owner is an actor on this executor, so the compiler keeps the rest
/// of the program away from them; GLib's callbacks come on the same thread and enter the actor without waiting.
final class GLibLoop: SerialExecutor {
    private enum Work: Sendable {
        case job(UnownedJob)
        case call(@Sendable () -> Void)
    }

    private struct State {
        var queue: [Work] = []
        /// After the end whoever brings work runs it, one at a time.
        var isRetired = false
        var isRunningLate = false
    }

    // GMainContext and GMainLoop are made to be used from any thread.
    nonisolated(unsafe) private let context: OpaquePointer
    nonisolated(unsafe) private let loop: OpaquePointer
    private let state = Mutex(State())
    private let thread = Atomic<UInt>(0)
    nonisolated(unsafe) private var handle: UnsafeMutablePointer<GThread>?

    /// Starts the thread.
    init(name: String) {
        context = g_main_context_new()
        loop = g_main_loop_new(context, 0)
        handle = g_thread_new(name, runGLibLoop, Unmanaged.passRetained(self).toOpaque())
    }

    deinit {
        g_main_loop_unref(loop)
        g_main_context_unref(context)
    }

    func enqueue(_ job: consuming ExecutorJob) { add(.job(UnownedJob(job))) }

    /// Runs `call` on the thread soon.
    func async(_ call: @escaping @Sendable () -> Void) { add(.call(call)) }

    func checkIsolated() {
        precondition(isOnThread, "an object of the HTTP thread is touched from another thread")
    }

    func isIsolatingCurrentContext() -> Bool? { isOnThread ? true : nil }

    private var isOnThread: Bool { thread.load(ordering: .relaxed) == UInt(bitPattern: g_thread_self()) }

    /// Gives a source to the loop. The loop keeps it until it is destroyed.
    func attach(_ source: UnsafeMutablePointer<GSource>) { g_source_attach(source, context) }

    /// Ends the loop and waits for its thread. Not to be called on it.
    func stop() {
        g_main_loop_quit(loop)
        g_thread_join(handle)
    }

    private func add(_ work: Work) {
        let (isFirst, runsLate) = state.withLock { state -> (Bool, Bool) in
            state.queue.append(work)
            guard state.isRetired else { return (state.queue.count == 1, false) }
            defer { state.isRunningLate = true }
            return (false, !state.isRunningLate)
        }
        if isFirst {
            let source = g_idle_source_new()
            g_source_set_priority(source, G_PRIORITY_DEFAULT)
            g_source_set_callback(source, runQueuedWork, Unmanaged.passRetained(self).toOpaque(), releaseLoop)
            g_source_attach(source, context)
            g_source_unref(source)
        }
        if runsLate { runLate() }
    }

    fileprivate func main() {
        thread.store(UInt(bitPattern: g_thread_self()), ordering: .relaxed)
        g_main_context_push_thread_default(context)
        g_main_loop_run(loop)
        state.withLock {
            $0.isRetired = true
            $0.isRunningLate = true
        }
        runLate()
        g_main_context_pop_thread_default(context)
        thread.store(0, ordering: .relaxed)
    }

    fileprivate func runQueue() {
        let queue = state.withLock { state in
            defer { state.queue = [] }
            return state.queue
        }
        for work in queue { run(work) }
    }

    private func runLate() {
        while true {
            let queue = state.withLock { state -> [Work] in
                defer { state.queue = [] }
                if state.queue.isEmpty { state.isRunningLate = false }
                return state.queue
            }
            if queue.isEmpty { return }
            for work in queue { run(work) }
        }
    }

    private func run(_ work: Work) {
        switch work {
        case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
        case .call(let call): call()
        }
    }
}

private func runGLibLoop(_ context: gpointer?) -> gpointer? {
    guard let context else { return nil }
    Unmanaged<GLibLoop>.fromOpaque(context).takeRetainedValue().main()
    return nil
}

private func runQueuedWork(_ context: gpointer?) -> gboolean {
    guard let context else { return 0 }
    Unmanaged<GLibLoop>.fromOpaque(context).takeUnretainedValue().runQueue()
    return 0
}

private func releaseLoop(_ context: gpointer?) {
    if let context { Unmanaged<GLibLoop>.fromOpaque(context).release() }
}
