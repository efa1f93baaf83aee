import Glibc
import Primitives
import Testing

@testable import NetworkIO

/// Whether this machine has IPv6 on loopback, asked without the fallback of a socket that serves both families: containers often have none.
private let hasIPv6 = ConditionTrait.enabled("IPv6 on loopback") {
    do {
        _ = try UDPSocket(UDPSocketConfiguration(address: UDPSocketTests.loopbackIPv6, port: 0))
        return true
    } catch { return false }
}

@Suite("UDP over loopback")
struct UDPSocketTests {
    static let loopback = SocketAddress(ipv4: 0x7f00_0001, port: 0)
    static let loopbackIPv6 = SocketAddress(high: 0, low: 1, port: 0)

    /// A receiver that takes datagrams one by one, or joined.
    static func receiver(joins: Bool = false) throws -> UDPSocket {
        var configuration = UDPSocketConfiguration(address: loopback, port: 0)
        configuration.joinsReceived = joins
        return try UDPSocket(configuration)
    }

    static func sender() throws -> UDPSocket { try UDPSocket(UDPSocketConfiguration(port: 0)) }

    /// Everything that waits at `socket`. Loopback delivers within the send call, so nothing has to be waited for.
    static func drain(_ socket: inout UDPSocket) -> [[UInt8]] {
        var datagrams: [[UInt8]] = []
        while let run = socket.receive() {
            for index in 0..<run.count { datagrams.append(Array(run[index])) }
        }
        return datagrams
    }

    /// A datagram whose bytes show its place.
    static func datagram(_ number: Int, _ size: Int) -> [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: number &* 31 &+ $0) }
    }

    static func address(_ socket: borrowing UDPSocket) -> SocketAddress {
        SocketAddress(ipv4: 0x7f00_0001, port: socket.port)
    }

    static func append(_ bytes: [UInt8], to address: SocketAddress, _ batch: inout OutboundBatch) {
        let isTaken = bytes.withUnsafeBytes { batch.append($0, to: address) }
        precondition(isTaken, "the test's batch is large enough")
    }

    @Test(
        "A run of datagrams of one size is sent in one segmented send and arrives unchanged; the last one may be shorter",
        arguments: [false, true])
    func runs(_ joins: Bool) throws {
        var one = try Self.receiver(joins: joins)
        var two = try Self.receiver(joins: joins)
        var sender = try Self.sender()
        var batch = OutboundBatch(datagrams: 512, bytes: 1 << 20)
        // To one: 10 equal and a shorter one, then two of other sizes. To two: a single, then a pair.
        let toOne =
            (0..<10).map { Self.datagram($0, 1_200) } + [Self.datagram(10, 300)]
            + [Self.datagram(11, 900), Self.datagram(12, 1_000)]
        for bytes in toOne { Self.append(bytes, to: Self.address(one), &batch) }
        let toTwo = [Self.datagram(13, 100), Self.datagram(14, 700), Self.datagram(15, 700)]
        for bytes in toTwo { Self.append(bytes, to: Self.address(two), &batch) }
        sender.send(batch)
        #expect(Self.drain(&one) == toOne)
        #expect(Self.drain(&two) == toTwo)
        #expect(sender.counters.sent == 16)
        #expect(sender.counters.segmented == 13)
        #expect(sender.counters.sendCalls == 1, "all of it fits one system call")
        #expect(one.counters.received == 13)
        if joins { #expect(one.counters.receiveCalls < 13, "the kernel joined the run") }
    }

    @Test("A larger datagram ends a run: a short one in the middle would shift bytes")
    func growing() throws {
        var receiver = try Self.receiver()
        var sender = try Self.sender()
        var batch = OutboundBatch(datagrams: 512, bytes: 1 << 20)
        let sizes = [500, 500, 499, 500, 500, 501, 1, 1_400, 1_400, 1]
        let datagrams = sizes.enumerated().map { Self.datagram($0, $1) }
        for bytes in datagrams { Self.append(bytes, to: Self.address(receiver), &batch) }
        sender.send(batch)
        #expect(Self.drain(&receiver) == datagrams)
    }

    @Test(
        "Long runs are split at 64 datagrams and at 65,507 bytes", arguments: [(200, 100), (200, 1_400), (3, 30_000)])
    func long(_ count: Int, _ size: Int) throws {
        var receiver = try Self.receiver()
        var sender = try Self.sender()
        var batch = OutboundBatch(datagrams: 512, bytes: 1 << 20)
        let datagrams = (0..<count).map { Self.datagram($0, size) }
        for bytes in datagrams { Self.append(bytes, to: Self.address(receiver), &batch) }
        sender.send(batch)
        #expect(Self.drain(&receiver) == datagrams)
        #expect(sender.counters.sendRefused == 0)
    }

    @Test("Datagrams that the kernel refuses are counted and stop no others")
    func refused() throws {
        var receiver = try Self.receiver()
        var sender = try Self.sender()
        var batch = OutboundBatch(datagrams: 512, bytes: 1 << 20)
        let nowhere = SocketAddress(ipv4: 0x7f00_0001, port: 0)
        Self.append(Self.datagram(0, 10), to: Self.address(receiver), &batch)
        Self.append(Self.datagram(1, 10), to: nowhere, &batch)
        for number in 2..<5 { Self.append(Self.datagram(number, 20), to: nowhere, &batch) }
        Self.append(Self.datagram(5, 10), to: Self.address(receiver), &batch)
        sender.send(batch)
        #expect(Self.drain(&receiver) == [Self.datagram(0, 10), Self.datagram(5, 10)])
        #expect(sender.counters.sent == 2)
        #expect(sender.counters.sendRefused == 4)
    }

    @Test("More than 64 messages are sent in several calls, in order")
    func manyMessages() throws {
        var receiver = try Self.receiver()
        var sender = try Self.sender()
        var batch = OutboundBatch(datagrams: 512, bytes: 1 << 20)
        // Growing sizes never join.
        let datagrams = (0..<150).map { Self.datagram($0, 10 + $0) }
        for bytes in datagrams { Self.append(bytes, to: Self.address(receiver), &batch) }
        sender.send(batch)
        #expect(Self.drain(&receiver) == datagrams)
        #expect(sender.counters.sendCalls == 3)
        #expect(sender.counters.segmented == 0)
    }

    @Test("With segmentation off everything still arrives")
    func unsegmented() throws {
        var receiver = try Self.receiver()
        var configuration = UDPSocketConfiguration(port: 0)
        configuration.segmentsSent = false
        var sender = try UDPSocket(configuration)
        var batch = OutboundBatch(datagrams: 512, bytes: 1 << 20)
        let datagrams = (0..<70).map { Self.datagram($0, 1_000) }
        for bytes in datagrams { Self.append(bytes, to: Self.address(receiver), &batch) }
        sender.send(batch)
        #expect(Self.drain(&receiver) == datagrams)
        #expect(sender.counters.segmented == 0)
    }

    @Test("A route that refuses segmentation gets single datagrams, in order, and the refusals are counted")
    func refusedSegments() throws {
        var receiver = try Self.receiver()
        var sender = try Self.sender()
        // A socket without checksums is one that the kernel does not segment for (EINVAL).
        var isOn: Int32 = 1
        let status = setsockopt(
            sender.descriptor, SOL_SOCKET, SO_NO_CHECK, &isOn, socklen_t(MemoryLayout<Int32>.size))
        #expect(status == 0)
        var batch = OutboundBatch(datagrams: 512, bytes: 1 << 20)
        let datagrams = (0..<20).map { Self.datagram($0, $0 % 7 == 6 ? 500 : 1_000) }
        for bytes in datagrams { Self.append(bytes, to: Self.address(receiver), &batch) }
        sender.send(batch)
        #expect(Self.drain(&receiver) == datagrams)
        #expect(sender.counters.sent == 20)
        #expect(sender.counters.segmented == 0)
        #expect(sender.counters.segmentationRefused == 3)
        #expect(sender.counters.sendRefused == 0)
    }

    @Test("A socket that is bound to no address serves IPv4, and a reply reaches the sender")
    func servesIPv4() throws {
        var server = try UDPSocket(UDPSocketConfiguration(port: 0))
        var client = try Self.receiver()
        var batch = OutboundBatch(datagrams: 16, bytes: 10_000)
        Self.append([1, 2, 3], to: Self.address(server), &batch)
        client.send(batch)
        let received = server.receive()
        let run = try #require(received)
        #expect(run.source == Self.address(client))
        #expect(run.source.isIPv4)
        batch.removeAll()
        Self.append([4], to: run.source, &batch)
        server.send(batch)
        #expect(Self.drain(&client) == [[4]])
    }

    @Test("The same socket serves IPv6 too", hasIPv6)
    func servesIPv6() throws {
        var server = try UDPSocket(UDPSocketConfiguration(port: 0))
        let isIPv6 = server.isIPv6
        try #require(isIPv6)
        var client = try UDPSocket(UDPSocketConfiguration(address: Self.loopbackIPv6, port: 0))
        var batch = OutboundBatch(datagrams: 16, bytes: 10_000)
        Self.append([5, 6], to: SocketAddress(high: 0, low: 1, port: server.port), &batch)
        client.send(batch)
        let received = server.receive()
        let run = try #require(received)
        #expect(run.source == SocketAddress(high: 0, low: 1, port: client.port))
        #expect(Array(run[0]) == [5, 6])
        batch.removeAll()
        Self.append([7], to: run.source, &batch)
        server.send(batch)
        #expect(Self.drain(&client) == [[7]])
    }

    @Test("An empty datagram arrives as one datagram")
    func empty() throws {
        var receiver = try Self.receiver()
        var sender = try Self.sender()
        var batch = OutboundBatch(datagrams: 16, bytes: 100)
        for _ in 0..<2 { Self.append([], to: Self.address(receiver), &batch) }
        Self.append([1], to: Self.address(receiver), &batch)
        sender.send(batch)
        #expect(Self.drain(&receiver) == [[], [], [1]])
    }

    @Test("A port in use is reported")
    func takenPort() throws {
        let first = try UDPSocket(UDPSocketConfiguration(port: 0))
        do {
            _ = try UDPSocket(UDPSocketConfiguration(port: first.port))
            Issue.record("two sockets on one port")
        } catch {
            #expect(error.description == "bind: Address already in use")
        }
    }

    @Test("Datagrams that the kernel drops from a full receive buffer are counted")
    func receiveDrops() throws {
        var configuration = UDPSocketConfiguration(address: Self.loopback, port: 0)
        configuration.receiveBufferBytes = 1
        var receiver = try UDPSocket(configuration)
        var sender = try Self.sender()
        var batch = OutboundBatch(datagrams: 512, bytes: 1 << 20)
        for number in 0..<100 { Self.append(Self.datagram(number, 1_000 + number), to: Self.address(receiver), &batch) }
        sender.send(batch)
        let arrived = Self.drain(&receiver).count
        #expect(arrived < 100)
        #expect(receiver.receiveBufferDrops == UInt64(100 - arrived))
    }

    @Test(
        "Of two sockets on one port the second gets transport-wide feedback and the first everything else; no other socket can bind the port"
    )
    func splitFeedback() throws {
        let configuration = UDPSocketConfiguration(address: Self.loopback, port: 0)
        var media = try UDPSocket(configuration)
        var feedback = try UDPSocket(feedbackOf: media, configuration)
        #expect(feedback.port == media.port)
        // Feedback, padded feedback, a NACK, a report, RTP, STUN, nothing.
        let reports: [[UInt8]] = [[0x8f, 205, 0, 3, 1], [0xaf, 205, 0, 3, 2]]
        let others: [[UInt8]] = [
            [0x81, 205, 0, 3], [0x81, 201, 0, 1], [0x90, 111, 1], [0x8f, 206], [0, 1, 0, 0], [0x8f], [],
        ]
        // Several senders: without the choice by content the kernel would spread them.
        for _ in 0..<20 {
            // Datagrams that left in one piece come in one piece, wherever the first of them goes.
            var apart = UDPSocketConfiguration(port: 0)
            apart.segmentsSent = false
            var sender = try UDPSocket(apart)
            var batch = OutboundBatch(datagrams: 16, bytes: 1_000)
            for datagram in reports + others { Self.append(datagram, to: Self.address(media), &batch) }
            sender.send(batch)
        }
        #expect(Self.drain(&feedback) == Array(repeating: reports, count: 20).flatMap { $0 })
        #expect(Self.drain(&media) == Array(repeating: others, count: 20).flatMap { $0 })
        var taken = configuration
        taken.port = media.port
        #expect(throws: SystemError.self) { _ = try UDPSocket(taken) }
    }

    @Test("A datagram longer than the path MTU is fragmented, from the first on that meets such a path")
    func fragments() throws {
        // Loopback carries 65,536 bytes; nothing longer fits UDP. What is refused here is refused for good, and ends nothing.
        var receiver = try Self.receiver()
        var sender = try Self.sender()
        let isAllowed = sender.mayFragment
        #expect(!isAllowed)
        var batch = OutboundBatch(datagrams: 16, bytes: 200_000)
        Self.append(Self.datagram(0, 65_508), to: Self.address(receiver), &batch)
        Self.append(Self.datagram(1, 100), to: Self.address(receiver), &batch)
        sender.send(batch)
        let isAllowedNow = sender.mayFragment
        #expect(isAllowedNow)
        #expect(sender.counters.sendRefused == 1)
        #expect(Self.drain(&receiver) == [Self.datagram(1, 100)])
    }
}
