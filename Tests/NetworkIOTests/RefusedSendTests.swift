import CLinux
import Glibc
import Primitives
import Testing

@testable import NetworkIO

/// Errors that a card or a firewall answers with and loopback never does: what can leave leaves in order, what cannot is counted.
@Suite("Refused sends")
struct RefusedSendTests {
    private typealias Sockets = UDPSocketTests

    /// Runs of four datagrams of 1,000 bytes, each with a lone one of 100 behind it.
    private static let datagrams = (0..<40).map { Sockets.datagram($0, $0 % 5 == 4 ? 100 : 1_000) }
    /// Lengths fall, so a lone datagram ends its run: five datagrams a message.
    private static let runs = 8, perRun = 5

    /// What arrives of `datagrams` where `refusal` answers, and what was counted.
    private static func send(
        _ refusal: @escaping (clinux_message) -> Int32
    ) throws -> (arrived: [[UInt8]], counters: UDPSocketCounters, isStillSegmenting: Bool) {
        var receiver = try Sockets.receiver()
        var sender = try Sockets.sender()
        sender.refusal = refusal
        var batch = OutboundBatch(datagrams: 512, bytes: 1 << 20)
        for bytes in datagrams { Sockets.append(bytes, to: Sockets.address(receiver), &batch) }
        sender.send(batch)
        return (Sockets.drain(&receiver), sender.counters, sender.segmentsSent)
    }

    @Test("A route without checksum offload (EIO) gets single datagrams from then on; none is lost")
    func noOffload() throws {
        let (arrived, counters, isStillSegmenting) = try Self.send { $0.segment > 0 ? EIO : 0 }
        #expect(arrived == Self.datagrams)
        #expect(counters.sent == 40)
        #expect(counters.segmented == 0)
        #expect(counters.segmentationRefused == UInt64(Self.runs))
        #expect(counters.sendRefused == 0)
        #expect(counters.sendBufferFull == 0)
        #expect(!isStillSegmenting)
    }

    @Test(
        "A segmented send that is refused (EINVAL, EMSGSIZE) is repeated in single datagrams; later ones are segmented",
        arguments: [
            EINVAL, EMSGSIZE,
        ])
    func oneRun(_ error: Int32) throws {
        // Every second run, whenever it comes; a socket that may cut datagrams is asked once more (EMSGSIZE).
        let (arrived, counters, isStillSegmenting) = try Self.send { message in
            guard message.segment > 0 else { return 0 }
            return Self.number(of: message) / Self.perRun % 2 == 1 ? error : 0
        }
        #expect(arrived == Self.datagrams)
        #expect(counters.sent == 40)
        #expect(counters.segmented == 20)
        #expect(counters.segmentationRefused == 4)
        #expect(counters.sendRefused == 0)
        #expect(isStillSegmenting)
    }

    @Test(
        "Datagrams refused by a firewall (EPERM) or with the network down are counted, and no others are lost",
        arguments: [
            EPERM, ENETUNREACH, ENETDOWN,
        ])
    func firewall(_ error: Int32) throws {
        let (arrived, counters, isStillSegmenting) = try Self.send {
            Self.number(of: $0) / Self.perRun == 3 ? error : 0
        }
        #expect(arrived == Array(Self.datagrams[..<15] + Self.datagrams[20...]))
        #expect(counters.sent == 35)
        #expect(counters.sendRefused == 5)
        #expect(counters.segmentationRefused == 0)
        #expect(isStillSegmenting)
    }

    @Test("A full queue (ENOBUFS) is retried once for a message; then nothing is lost")
    func fullOnce() throws {
        var isFull = true
        let (arrived, counters, _) = try Self.send { message in
            guard Self.number(of: message) / Self.perRun == 2, isFull else { return 0 }
            isFull = false
            return ENOBUFS
        }
        #expect(arrived == Self.datagrams)
        #expect(counters.sent == 40)
        #expect(counters.sendBufferFull == 0)
    }

    @Test(
        "A queue that stays full loses the datagrams that meet it, all of them counted, and no others",
        arguments: [ENOBUFS, EAGAIN])
    func fullForGood(_ error: Int32) throws {
        let (arrived, counters, isStillSegmenting) = try Self.send {
            Self.number(of: $0) / Self.perRun >= 6 ? error : 0
        }
        #expect(arrived == Array(Self.datagrams[..<30]))
        #expect(counters.sent == 30)
        #expect(counters.sendBufferFull == 10)
        #expect(counters.sendRefused == 0)
        #expect(isStillSegmenting)
    }

    @Test("Single datagrams of a split send are counted one by one when they are refused, too")
    func apart() throws {
        let (arrived, counters, _) = try Self.send { message in
            if message.segment > 0 { return EIO }
            return Self.number(of: message) == 7 ? EPERM : Self.number(of: message) == 8 ? ENOBUFS : 0
        }
        #expect(arrived == Array(Self.datagrams[..<7] + Self.datagrams[9...]))
        #expect(counters.sent == 38)
        #expect(counters.sendRefused == 1)
        #expect(counters.sendBufferFull == 1)
    }

    /// The number that `UDPSocketTests.datagram` put into the first datagram of a message.
    private static func number(of message: clinux_message) -> Int {
        // 31 times 223 is 1 modulo 256.
        Int(message.bytes.load(as: UInt8.self) &* 223)
    }
}
