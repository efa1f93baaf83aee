import Forwarding
import Primitives

/// Where a peer's media goes, and whether its video is held because the reader there is slow.
struct DownlinkWay {
    private(set) var isHeld = false
    private var destination: SocketAddress?

    /// More waits on this side of a TCP connection than its reader accepts; false if it is held already.
    mutating func hold(_ path: inout SendPath, at now: MonotonicTime) -> Bool {
        guard !isHeld else { return false }
        isHeld = true
        path.backlogged(at: now)
        return true
    }

    /// False if it is not held.
    mutating func release() -> Bool {
        guard isHeld else { return false }
        isHeld = false
        return true
    }

    /// Whether media goes elsewhere than before while video is held, so that the slow reader no longer matters. TCP loses nothing.
    mutating func follow(_ new: SocketAddress, _ path: inout SendPath) -> Bool {
        path.setReliable(new.isTCP)
        defer { destination = new }
        return isHeld && destination != nil && destination != new
    }
}
