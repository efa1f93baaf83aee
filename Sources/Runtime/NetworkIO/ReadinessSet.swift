import CLinux
import Glibc
public import Primitives

/// A level-triggered epoll set of any number of descriptors, each with a mark of its owner's choice.
///
/// The cost of waiting depends on the ready descriptors, not on the watched ones. A descriptor leaves the set when it is closed.
public final class ReadinessSet: Sendable {
    /// What a descriptor is watched for. A broken connection is always reported.
    public struct Interest: OptionSet, Sendable, Hashable {
        public let rawValue: UInt32
        public init(rawValue: UInt32) { self.rawValue = rawValue }
        /// Bytes, a connection to accept, or the end of the stream.
        public static let readable = Interest(rawValue: EPOLLIN.rawValue)
        /// Room for bytes.
        public static let writable = Interest(rawValue: EPOLLOUT.rawValue)
    }

    /// A descriptor that is ready.
    public struct Ready: Sendable, Hashable {
        /// The mark that it was added with.
        public let mark: UInt64
        /// What it is ready for.
        public let interest: Interest
        /// Whether its connection broke or both sides have ended it.
        public let isBroken: Bool
    }

    /// Readable while a descriptor of the set is ready, for a `Poller`.
    public let descriptor: Int32

    /// An empty set.
    public init() throws(SystemError) {
        descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw SystemError("epoll_create1") }
    }

    deinit { close(descriptor) }

    /// Watches a descriptor from now on.
    public func add(_ fd: Int32, _ interest: Interest, mark: UInt64) throws(SystemError) {
        guard clinux_epoll_mark(descriptor, EPOLL_CTL_ADD, fd, interest.rawValue, mark) == 0 else {
            throw SystemError("epoll_ctl")
        }
    }

    /// Changes what a descriptor of the set is watched for.
    public func change(_ fd: Int32, _ interest: Interest, mark: UInt64) {
        // It was added, so this cannot fail.
        _ = clinux_epoll_mark(descriptor, EPOLL_CTL_MOD, fd, interest.rawValue, mark)
    }

    /// Stops watching a descriptor of the set, which goes to another owner.
    public func remove(_ fd: Int32) { _ = clinux_epoll_mark(descriptor, EPOLL_CTL_DEL, fd, 0, 0) }

    /// Sleeps until a descriptor is ready or `deadline` has come, and fills `ready` with at most `limit` ready ones. Those of them that are still ready the
    /// next time come after the others then.
    public func wait(
        into ready: inout [Ready], until deadline: MonotonicTime, now: MonotonicTime, limit: Int = .max
    ) {
        let pause: Int64 = deadline == .distantFuture ? -1 : max(0, (deadline - now).nanoseconds)
        ready.removeAll(keepingCapacity: true)
        let capacity = min(limit, Int(CLINUX_READY_LIMIT))
        withUnsafeTemporaryAllocation(of: clinux_ready.self, capacity: capacity) { taken in
            let count = clinux_epoll_take(descriptor, taken.baseAddress, Int32(capacity), pause)
            for index in 0..<max(0, Int(count)) {
                let events = taken[index].events
                ready.append(
                    Ready(
                        mark: taken[index].mark,
                        interest: Interest(rawValue: events & (EPOLLIN.rawValue | EPOLLOUT.rawValue)),
                        isBroken: events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0))
            }
        }
    }
}
