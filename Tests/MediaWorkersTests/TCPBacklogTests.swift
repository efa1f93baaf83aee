import Glibc
import MediaControl
import NetworkIO
import Primitives
import Testing

@testable import MediaWorkers

@Suite("What a slow reader has not taken")
struct TCPBacklogTests {
    /// Two connected sockets, the first of which takes little at a time.
    private static func pair() throws -> (TCPSocket, TCPSocket) {
        var ends: [Int32] = [0, 0]
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        var size: Int32 = 4_096
        setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        return (TCPSocket(descriptor: ends[0]), TCPSocket(descriptor: ends[1]))
    }

    private static func everything(at socket: TCPSocket) -> [UInt8] {
        var all: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while case .bytes(let count) = part.withUnsafeMutableBytes({ socket.read(into: $0) }) { all += part[..<count] }
        return all
    }

    private func connection(_ socket: TCPSocket) -> TCPConnection {
        TCPConnection(
            socket, address: SocketAddress(high: 0, low: 1, port: 9, connection: 1), serial: 1, initial: [], at: .zero
        )
    }

    private func frame(_ number: Int, _ length: Int) -> [UInt8] {
        [UInt8(length >> 8), UInt8(length & 0xff)]
            + [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: length)
    }

    @Test("F9: what the kernel does not take comes later, whole and in order; then the backlog has no memory")
    func order() throws {
        let (own, other) = try Self.pair()
        let connection = connection(own)
        var sent: [UInt8] = []
        var number = 0
        var arrived: [UInt8] = []
        for _ in 0..<40 {
            let frame = frame(number, 1_100)
            number += 1
            sent += frame
            frame.withUnsafeBytes {
                if connection.backlog.isEmpty {
                    _ = connection.send($0, count: 1, mayWait: true, at: .zero)
                } else {
                    _ = connection.queue($0, isMedia: true, at: .zero)
                }
            }
            if number % 3 == 0 {
                arrived += Self.everything(at: other)
                _ = connection.drain()
            }
        }
        while !connection.backlog.isEmpty {
            arrived += Self.everything(at: other)
            _ = connection.drain()
        }
        arrived += Self.everything(at: other)
        #expect(arrived == sent)
        #expect(connection.end == nil)
    }

    @Test("F9: a slow reader's video is held once, beyond 128 kB or half a second, and may flow when it has caught up")
    func held() throws {
        let (own, other) = try Self.pair()
        let connection = connection(own)
        let frame = frame(1, 1_100)
        let waits = frame.withUnsafeBytes { bytes -> Bool in
            for _ in 0..<100 where connection.backlog.isEmpty {
                if connection.send(bytes, count: 1, mayWait: true, at: .zero).waits { return true }
            }
            return false
        }
        #expect(waits)
        var holds = 0, dropped = 0, most = 0
        for step in 0..<400 {
            frame.withUnsafeBytes {
                let outcome = connection.queue($0, isMedia: true, at: .zero + .milliseconds(Int64(step / 10)))
                holds += outcome.isHeldNow ? 1 : 0
                dropped += outcome.dropped
            }
            if holds == 0 { most = connection.backlog.count }
        }
        #expect(holds == 1 && connection.isHeld && most <= 128 << 10)
        #expect(dropped > 0 && connection.backlog.count <= TCPBacklog.capacity, "memory is bounded, whatever is sent")
        // Media that has waited too long is dropped, a report is not while there is room.
        _ = Self.everything(at: other)
        #expect(!connection.drain(), "not all of it fits the kernel")
        let late = MonotonicTime.zero + .seconds(3)
        let counts = frame.withUnsafeBytes {
            (
                connection.queue($0, isMedia: true, at: late).dropped,
                connection.queue($0, isMedia: false, at: late).dropped
            )
        }
        #expect(counts == (1, 0))
        var caughtUp = 0
        while !connection.backlog.isEmpty {
            _ = Self.everything(at: other)
            if connection.drain() { caughtUp += 1 }
        }
        #expect(caughtUp == 1 && !connection.isHeld)
    }

    @Test("F9: where there is no memory for a backlog, the connection ends: half a packet cannot be left out")
    func budget() throws {
        let (own, other) = try Self.pair()
        let connection = connection(own)
        let frame = frame(1, 1_100)
        frame.withUnsafeBytes { bytes in
            for _ in 0..<100 where connection.end == nil {
                _ = connection.send(bytes, count: 1, mayWait: false, at: .zero)
            }
        }
        #expect(connection.end == .overBudget)
        withExtendedLifetime(other) {}
    }
}
