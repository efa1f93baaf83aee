import Glibc
import NetworkIO
import Primitives
import Synchronization

/// The thread that moves the tables of finished files to the front, one file at a time and behind everything else: it waits while the recorder lags.
final class FrontIndexer: Sendable {
    private let wake: WakeSignal
    private let orders: Mailbox<String>
    private let books: RecordingBooks
    private let isStopping = Mutex(false)
    /// The recorder is behind when packets waited so long: its disk is busy.
    private static let longestLag = TimeInterval.milliseconds(500)
    /// In microseconds.
    private static let pause: useconds_t = 200_000

    init(_ books: RecordingBooks) throws(SystemError) {
        wake = try WakeSignal()
        orders = Mailbox(wake: wake)
        self.books = books
    }

    /// A recording has ended.
    func post(_ recording: String) { _ = orders.post(recording) }

    /// What is not done stays pending until the next start.
    func stop() {
        isStopping.withLock { $0 = true }
        wake.signal()
    }

    private var mustStop: Bool { isStopping.withLock { $0 } }

    /// Runs until it is to stop.
    func run() {
        Scheduling.idleCurrentThread()
        guard let poller = try? Poller(), (try? poller.add(wake.descriptor)) != nil else {
            preconditionFailure("the thread that finishes files cannot wait for what it is told")
        }
        while !mustStop {
            let now = MonotonicClock.now()
            let ready = poller.wait(until: now + .seconds(60), now: now)
            if poller.isReady(wake.descriptor, of: ready) { wake.clear() }
            workOff()
        }
    }

    /// Does what was posted.
    func workOff() {
        var taken: [String] = []
        orders.drain(into: &taken)
        for recording in taken where !mustStop { index(recording) }
    }

    private func index(_ recording: String) {
        guard let summary = books[recording] else { return }
        for file in summary.tracks.flatMap(\.files) where file.index == .pending {
            let path = "\(books.folder(of: summary))/\(file.name)"
            guard let fault = move(path, length: file.bytes ?? 0) else { return }
            if !fault.isEmpty { FrontIndexPass.abandon(path) }
            guard books.indexed(file.name, of: summary, fault: fault.isEmpty ? nil : fault) else { return }
        }
    }

    /// Why the file keeps its table behind its data; empty: it does not. nil: this has to stop.
    private func move(_ path: String, length: Int64) -> String? {
        do throws(SystemError) {
            guard books.hasRoom(beside: length) else { return "disk_full" }
            guard var pass = try FrontIndexPass(path) else { return "" }
            while !(try pass.advance()) {
                guard books.hasRoom(beside: 0) else { return "disk_full" }
                // An ended process waits no longer than that.
                while books.lag > Self.longestLag, !mustStop { usleep(Self.pause) }
                if mustStop {
                    FrontIndexPass.abandon(path)
                    return nil
                }
            }
            return ""
        } catch {
            return error.code == ENOSPC ? "disk_full" : "disk_error"
        }
    }
}
