/// Why a TCP connection of a media worker was closed.
public enum TCPConnectionEnd: UInt8, Sendable, CaseIterable {
    /// The other side ended it, or it broke.
    case byPeer
    /// Its peer has left, or uses other connections.
    case unused
    /// Nothing in its first packets was a valid check for a peer of this worker: garbage, an unknown user name fragment, a wrong password.
    case withoutCheck
    /// It sent no valid check in time.
    case tooSlow
    /// It sent a packet longer than any that is accepted.
    case malformed
    /// It had sent no valid check when others connected, and there was no more room.
    case displaced
    /// There was no room for it: too many connections from one address, or in total.
    case refused
    /// There was no memory left for what it had not read.
    case overBudget
}

/// Counters and gauges of one worker's TCP connections.
public struct TCPStatistics: Sendable, Equatable {
    /// Open connections, those without a valid check included.
    public var open = 0
    /// Connections accepted.
    public var accepted: UInt64 = 0
    /// Bytes that slow readers have not accepted yet.
    public var backlogBytes = 0
    /// How often a peer's video was held until it had caught up.
    public var holds: UInt64 = 0
    private var ends = [UInt64](repeating: 0, count: TCPConnectionEnd.allCases.count)

    public init() {}

    /// Counts one connection.
    public mutating func count(_ end: TCPConnectionEnd) { ends[Int(end.rawValue)] &+= 1 }

    /// The number of connections that ended for this reason.
    public subscript(end: TCPConnectionEnd) -> UInt64 { ends[Int(end.rawValue)] }

    /// Adds another worker's.
    public mutating func add(_ other: TCPStatistics) {
        open += other.open
        accepted &+= other.accepted
        backlogBytes += other.backlogBytes
        holds &+= other.holds
        for index in ends.indices { ends[index] &+= other.ends[index] }
    }
}
