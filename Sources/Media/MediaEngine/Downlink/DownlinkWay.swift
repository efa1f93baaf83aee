import Primitives

/// Where a peer's media goes, and whether its video is held because the reader there is slow.
struct DownlinkWay {
    private(set) var isHeld = false
    private var destination: SocketAddress?

    /// False if it is held already.
    mutating func hold() -> Bool {
        guard !isHeld else { return false }
        isHeld = true
        return true
    }

    /// False if it is not held.
    mutating func release() -> Bool {
        guard isHeld else { return false }
        isHeld = false
        return true
    }

    /// Whether media goes elsewhere than before while video is held: the slow reader has been left behind.
    mutating func follow(_ new: SocketAddress) -> Bool {
        defer { destination = new }
        return isHeld && destination != nil && destination != new
    }
}

extension Downlink {
    /// Whether video waits for a slow reader.
    var isHeld: Bool { way.isHeld }

    /// The reader of its TCP connection is slow; false if that is known.
    mutating func hold(at now: MonotonicTime) -> Bool {
        guard way.hold() else { return false }
        backlogged(at: now)
        return true
    }

    /// Media goes to `destination` from now on; whether video that was held for another one may be sent again.
    mutating func follow(_ destination: SocketAddress) -> Bool {
        setReliable(destination.isTCP)
        return way.follow(destination)
    }
}
