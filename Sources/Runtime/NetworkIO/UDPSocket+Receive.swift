import CLinux
import Glibc
public import Primitives

/// One or more datagrams of one sender, back to back, as one system call fetched them.
public struct ReceivedRun {
    /// The datagrams, in memory that belongs to the socket until its next `receive()`; may be written.
    public let bytes: UnsafeMutableRawBufferPointer
    /// The size of each datagram but the last, which may be shorter.
    public let segment: Int
    /// Who sent them.
    public let source: SocketAddress

    /// How many datagrams there are; an empty datagram is one.
    public var count: Int { max(1, (bytes.count + segment - 1) / max(1, segment)) }

    /// The datagram number `index`.
    public subscript(index: Int) -> UnsafeMutableRawBufferPointer {
        let start = index * segment
        return UnsafeMutableRawBufferPointer(rebasing: bytes[start..<min(start + segment, bytes.count)])
    }
}

extension UDPSocket {
    /// Sleeps until a datagram waits; false when none has come within `limit`.
    public borrowing func waitForDatagrams(_ limit: TimeInterval) -> Bool {
        clinux_wait_readable(descriptor, limit.nanoseconds) > 0
    }

    /// The next datagram or joined run; nil when none waits.
    public mutating func receive() -> ReceivedRun? {
        var high: UInt64 = 0
        var low: UInt64 = 0
        var port: UInt16 = 0
        var segment: UInt16 = 0
        var truncated: Int32 = 0
        while true {
            counters.receiveCalls &+= 1
            let length = clinux_receive(
                descriptor, isIPv6 ? 1 : 0, receiveBuffer.baseAddress, receiveBuffer.count, &high, &low, &port,
                &segment, &truncated)
            if length < 0 {
                // Anything but a signal means: nothing to fetch now. A broken socket shows as silence and in the logs of peers.
                if errno == EINTR { continue }
                return nil
            }
            let bytes = UnsafeMutableRawBufferPointer(rebasing: receiveBuffer[0..<length])
            let run = ReceivedRun(
                bytes: bytes, segment: segment == 0 ? length : Int(segment),
                source: SocketAddress(high: high, low: low, port: port))
            counters.received &+= UInt64(run.count)
            return run
        }
    }
}
