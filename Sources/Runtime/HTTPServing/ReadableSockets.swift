import CSoup
import Glibc

/// Watches any number of sockets for bytes through one descriptor of a `GLibLoop`.
///
/// GLib walks over all its sources, and the kernel over all their descriptors, each time the loop wakes: for a hundred open WebSockets
/// some 200 us, a tenth of what the server spends on a webinar of a hundred. An epoll set costs by what is ready.
///
/// Not Sendable: belongs to the loop's thread.
final class ReadableSockets {
    private let set: Int32
    private let source: GLibSource

    /// An empty set; `call` is given the numbers of the sockets that have bytes or have ended. nil when the system has no descriptor left.
    init?(on loop: GLibLoop, _ call: @escaping @Sendable (UInt64) -> Void) {
        let set = csoup_epoll_new()
        guard set >= 0 else { return nil }
        self.set = set
        source = GLibSource(readable: set, on: loop) {
            withUnsafeTemporaryAllocation(of: guint64.self, capacity: 64) { marks in
                let count = csoup_epoll_take(set, marks.baseAddress)
                for index in 0..<max(0, Int(count)) { call(UInt64(marks[index])) }
            }
            return true
        }
    }

    deinit {
        source.cancel()
        close(set)
    }

    /// Watches a socket from now on; false when the system refuses.
    func add(_ descriptor: Int32, number: UInt64) -> Bool { csoup_epoll_add(set, descriptor, guint64(number)) == 0 }

    /// Watches it no more. To be called before the socket is closed.
    func remove(_ descriptor: Int32) { csoup_epoll_remove(set, descriptor) }
}
