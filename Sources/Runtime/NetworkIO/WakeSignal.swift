import CLinux
import Glibc

/// Wakes a thread that sleeps in a `Poller`, from any thread (an eventfd).
public final class WakeSignal: Sendable {
    /// Readable after `signal()` until `clear()`.
    public let descriptor: Int32

    /// A signal that is not set.
    public init() throws(SystemError) {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        guard descriptor >= 0 else { throw SystemError("eventfd") }
    }

    deinit { close(descriptor) }

    /// Wakes the sleeper; a second call before `clear()` adds nothing.
    public func signal() {
        var one: UInt64 = 1
        // Fails only when 2^64 - 2 signals wait, which still wakes.
        _ = write(descriptor, &one, MemoryLayout<UInt64>.size)
    }

    /// Makes the descriptor unreadable; call before reading what was posted.
    public func clear() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, MemoryLayout<UInt64>.size)
    }
}
