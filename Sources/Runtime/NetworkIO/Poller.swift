import CLinux
import Glibc
public import Primitives

/// A level-triggered epoll set of few descriptors.
public struct Poller: ~Copyable {
    /// Descriptors a loop waits for: its sockets, its wake signal, and its set of TCP sockets.
    private static let capacity = 4
    private let descriptor: Int32
    private let events: UnsafeMutablePointer<epoll_event>

    /// An empty set.
    public init() throws(SystemError) {
        let descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw SystemError("epoll_create1") }
        self.descriptor = descriptor
        events = .allocate(capacity: Self.capacity)
    }

    deinit {
        close(descriptor)
        events.deallocate()
    }

    /// Waits for `fd` to become readable from now on.
    public func add(_ fd: Int32) throws(SystemError) {
        guard clinux_epoll_add(descriptor, fd, EPOLLIN.rawValue) == 0 else { throw SystemError("epoll_ctl") }
    }

    /// Starts or stops waiting for a descriptor that was added.
    public borrowing func watch(_ fd: Int32, _ isWatched: Bool) {
        // It was added, so this cannot fail.
        _ = clinux_epoll_change(descriptor, fd, isWatched ? EPOLLIN.rawValue : 0)
    }

    /// Sleeps until a descriptor is readable or `deadline` has come; returns how many descriptors are ready.
    ///
    /// `now` is the caller's time: with a deadline before it, the call does not sleep at all.
    public borrowing func wait(until deadline: MonotonicTime, now: MonotonicTime) -> Int {
        let pause: Int64 = deadline == .distantFuture ? -1 : max(0, (deadline - now).nanoseconds)
        let count = clinux_epoll_wait(descriptor, events, Int32(Self.capacity), pause)
        return max(0, Int(count))
    }

    /// Whether `fd` was among the `count` descriptors of the last wait.
    public borrowing func isReady(_ fd: Int32, of count: Int) -> Bool {
        (0..<count).contains { clinux_event_fd(events + $0) == fd }
    }
}
