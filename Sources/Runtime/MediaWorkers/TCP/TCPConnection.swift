import MediaControl
import NetworkIO
import Primitives
import RTP

/// One accepted connection of a worker.
final class TCPConnection {
    let socket: TCPSocket
    /// The address by which the engine knows it.
    let address: SocketAddress
    let acceptedAt: MonotonicTime
    /// Unique among all connections of a worker, unlike their numbers.
    let serial: UInt64
    var reader = FrameReader()
    /// Bytes that the acceptor of a shared port has already read.
    var initial: [UInt8]
    /// A valid check has arrived: the connection belongs to a peer.
    var isKnown = false
    /// Packets that arrived before that.
    var packetsBeforeCheck = 0
    /// Why it must be closed; it is closed when nothing of it is in use.
    private(set) var end: TCPConnectionEnd?
    private(set) var backlog = TCPBacklog()
    /// Its peer's video is held until the backlog is empty.
    private(set) var isHeld = false

    /// More than this exceeds a keyframe's burst: the reader is slow.
    private static let heldAbove = 128 << 10
    /// A reader is also slow if bytes wait for this long: the limit for a conversation one way (ITU-T G.114), as for packets that wait in a stopped process.
    private static let heldAfter = TimeSpan.milliseconds(500)
    /// Media that has waited for this long is useless; reports and handshakes may still be useful.
    private static let mediaAfter = TimeSpan.seconds(2)

    init(_ socket: TCPSocket, address: SocketAddress, serial: UInt64, initial: [UInt8], at now: MonotonicTime) {
        self.socket = socket
        self.serial = serial
        self.address = address
        self.initial = initial
        acceptedAt = now
    }

    /// Marks it to be closed; the first reason is kept.
    func close(_ reason: TCPConnectionEnd) { end = end ?? reason }

    /// The result of sending packets.
    struct Outcome {
        /// The number of dropped packets.
        var dropped = 0
        /// It has become slow.
        var isHeldNow = false
        /// The kernel did not accept everything: wait until it does.
        var waits = false
    }

    /// Sends adjacent packets with framing, while there is no backlog. `mayWait`: there is memory for one.
    func send(_ frames: UnsafeRawBufferPointer, count: Int, mayWait: Bool, at now: MonotonicTime) -> Outcome {
        guard end == nil else { return Outcome(dropped: count) }
        precondition(backlog.isEmpty, "what waits is sent first")
        var written = 0
        while written < frames.count {
            switch socket.write(UnsafeRawBufferPointer(rebasing: frames[written...])) {
            case .bytes(let more): written += more
            case .ended:
                close(.byPeer)
                return Outcome(dropped: count)
            case .blocked:
                // The rest of a packet cannot be omitted: the reader would take the next packet's bytes for it.
                guard mayWait, backlog.append(UnsafeRawBufferPointer(rebasing: frames[written...]), at: now) else {
                    close(.overBudget)
                    return Outcome(dropped: count)
                }
                return Outcome(waits: true)
            }
        }
        return Outcome()
    }

    /// Adds one packet with framing to the backlog, or drops it.
    func queue(_ frame: UnsafeRawBufferPointer, isMedia: Bool, at now: MonotonicTime) -> Outcome {
        guard end == nil, !isMedia || now - backlog.since < Self.mediaAfter, backlog.append(frame, at: now) else {
            return Outcome(dropped: 1, isHeldNow: hold())
        }
        let isSlow = backlog.count > Self.heldAbove || now - backlog.since > Self.heldAfter
        return Outcome(isHeldNow: isSlow && hold())
    }

    private func hold() -> Bool {
        guard !isHeld, end == nil else { return false }
        isHeld = true
        return true
    }

    /// Sends what waits, as far as the kernel accepts it; returns whether the peer's video was held and may flow again.
    func drain() -> Bool {
        guard backlog.drain(into: socket) else {
            close(.byPeer)
            return false
        }
        guard backlog.isEmpty, isHeld else { return false }
        isHeld = false
        return true
    }
}
