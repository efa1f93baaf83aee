import CLinux
import Glibc
public import Primitives

/// One or more datagrams of one sender, back to back, as one system call fetched them.
public struct ReceivedRun {
    /// The datagrams, in memory that belongs to the socket until its next `receive()`; may be written.
    public let bytes: UnsafeMutableRawBufferPointer
    /// The size of each datagram but the last, which may be shorter.
    public let segment: Int
    /// Their sender.
    public let source: SocketAddress

    /// The number of datagrams; an empty datagram counts as one.
    public var count: Int { max(1, (bytes.count + segment - 1) / max(1, segment)) }

    /// The datagram number `index`.
    public subscript(index: Int) -> UnsafeMutableRawBufferPointer {
        let start = index * segment
        return UnsafeMutableRawBufferPointer(rebasing: bytes[start..<min(start + segment, bytes.count)])
    }
}

extension UDPSocket {
    /// Sleeps until a datagram waits; false if none has arrived within `limit`.
    public borrowing func waitForDatagrams(_ limit: TimeSpan) -> Bool {
        clinux_wait_readable(descriptor, limit.nanoseconds) > 0
    }

    /// The next datagram or joined run; nil if none waits.
    public mutating func receive() -> ReceivedRun? { fetch(into: 0) }

    /// Fetches up to `receiveSlots` datagrams or joined runs; returns how many there were. A caller that gets several at once can prefetch the memory of
    /// the later ones' senders while it works on the first.
    public mutating func receiveSome() -> Int {
        var count = 0
        while count < Self.receiveSlots, let run = fetch(into: count) {
            runs[count] = run
            count &+= 1
        }
        return count
    }

    /// The first `count` runs that `receiveSome` fetched, valid until the next call.
    @inline(__always) public borrowing func received(_ count: Int) -> UnsafeBufferPointer<ReceivedRun> {
        UnsafeBufferPointer(start: runs, count: count)
    }

    private mutating func fetch(into slot: Int) -> ReceivedRun? {
        let start = slot &* Self.slotStride
        let buffer = UnsafeMutableRawBufferPointer(rebasing: receiveBuffer[start..<(start &+ Self.receiveCapacity)])
        var high: UInt64 = 0
        var low: UInt64 = 0
        var port: UInt16 = 0
        var segment: UInt16 = 0
        var truncated: Int32 = 0
        while true {
            counters.receiveCalls &+= 1
            let length = clinux_receive(
                descriptor, isIPv6 ? 1 : 0, buffer.baseAddress, buffer.count, &high, &low, &port, &segment, &truncated)
            if length < 0 {
                // Any error but a signal means that there is nothing to fetch now. A broken socket shows as silence and in the logs of peers.
                if errno == EINTR { continue }
                return nil
            }
            let run = ReceivedRun(
                bytes: UnsafeMutableRawBufferPointer(rebasing: buffer[0..<length]),
                segment: segment == 0 ? length : Int(segment),
                source: SocketAddress(high: high, low: low, port: port))
            counters.received &+= UInt64(run.count)
            return run
        }
    }
}
