import Primitives
import Testing

@testable import DataChannels

/// What a hand-made peer does to an association. The peer is authenticated, but any participant is one.
@Suite struct HostileTests {
    /// A server's association with a peer whose packets the test writes; or its session, if one is given.
    private final class Victim {
        private let session: DataChannelSession?
        var association = SCTPAssociation(settings: .init(), remotePort: 5_000, random: RandomSource(seed: 5))
        var now = MonotonicTime(milliseconds: 1_000)
        private(set) var tag: UInt32 = 0
        /// The first number of the server.
        private(set) var firstNumber: UInt32 = 0
        private var tsn: UInt32 = 100

        init(_ session: DataChannelSession? = nil) {
            self.session = session
            connect(tag: 77)
        }

        func connect(tag peerTag: UInt32) {
            send(.initiation, Initiation(tag: peerTag, window: 100_000, streams: 10, firstTSN: 100).bytes, tag: 0)
            guard let reply = output().last, reply.count > 32 else { return }
            let answer = reply.withUnsafeBytes { Initiation(UnsafeRawBufferPointer(rebasing: $0[16...])) }
            guard let answer else { return }
            tag = answer.tag
            firstNumber = answer.firstTSN
            tsn = 100
            send(.cookieEcho, answer.cookie)
        }

        @discardableResult
        func send(_ type: ChunkType, flags: UInt8 = 0, _ value: [UInt8], tag: UInt32? = nil) -> Bool {
            var buffer = [UInt8](repeating: 0, count: 1_160)
            let length = buffer.withUnsafeMutableBytes {
                var packet = PacketWriter($0, from: 5_000, to: 5_000, tag: tag ?? self.tag)
                let fits = packet.chunk(type, flags: flags, value)
                #expect(fits)
                return packet.finish(withChecksum: true)
            }
            return buffer[..<length].withUnsafeBytes { packet in
                if let session { return session.receive(packet, at: now) }
                return association.receive(packet, at: now)
            }
        }

        /// Sends one DATA chunk; `ahead` leaves so many numbers out before it.
        func data(flags: UInt8, stream: UInt16 = 0, sequence: UInt16 = 0, length: Int, ahead: UInt32 = 0) {
            tsn &+= ahead
            var value: [UInt8] = []
            value.append(number: tsn)
            value.append(number: stream)
            value.append(number: sequence)
            value.append(number: UInt32(53))
            send(.data, flags: flags, value + [UInt8](repeating: 1, count: length))
            tsn &+= 1
        }

        /// Opens a channel on a stream that is new, and closes its direction of it; requests count from 0.
        func openAndClose(_ stream: UInt16, _ terms: DataChannelTerms, request: UInt32) {
            var opening: [UInt8] = []
            opening.append(number: tsn)
            opening.append(number: stream)
            opening.append(number: UInt16(0))
            opening.append(number: PayloadIdentifier.control)
            send(.data, flags: DataChunk.beginFlag | DataChunk.endFlag, opening + DCEPMessage.open(terms).bytes)
            var closing: [UInt8] = []
            closing.append(number: 100 + request)
            closing.append(number: UInt32(0))
            closing.append(number: tsn)
            closing.append(number: stream)
            var value: [UInt8] = []
            value.append(parameter: 13, closing)
            send(.reconfiguration, value)
            tsn &+= 1
        }

        func output() -> [[UInt8]] {
            var packets: [[UInt8]] = [], buffer = [UInt8](repeating: 0, count: 1_160)
            while true {
                let length = buffer.withUnsafeMutableBytes { room in
                    if let session { return session.write(into: room, at: now, allowsData: true) }
                    return association.write(into: room, at: now, allowsData: true)
                }
                guard length > 0 else { return packets }
                packets.append(Array(buffer[..<length]))
            }
        }
    }

    @Test("A message without end ends the association at the announced length")
    func endlessMessage() {
        let victim = Victim()
        victim.data(flags: DataChunk.beginFlag, length: 1_000)
        for _ in 0..<65 { victim.data(flags: 0, length: 1_000) }
        #expect(victim.association.hasEnded)
        #expect(victim.output().last?[12] == ChunkType.abort.rawValue)
    }

    @Test("Tiny fragments and held messages use the window up: 256 kB at most are stored")
    func tinyFragments() {
        let victim = Victim()
        for number in 0..<20_000 {
            victim.data(flags: 3, sequence: UInt16(truncatingIfNeeded: number + 1), length: 1)
        }
        #expect(!victim.association.hasEnded)
        let report = victim.output().last { $0[12] == ChunkType.sack.rawValue }
        #expect(
            report?[20..<24].elementsEqual([0, 0, 0, 0]) == true || (report?[22] ?? 1) == 0, "the window is closed")
    }

    @Test(
        "A thousand messages at most wait for one before them: the work for each grows with their number, and the window says so"
    )
    func crowd() {
        let victim = Victim()
        for number in 1...2_000 { victim.data(flags: 3, sequence: UInt16(number), length: 1) }
        let report = victim.output().last { $0[12] == ChunkType.sack.rawValue }
        #expect(report?[20..<24].elementsEqual([0, 0, 0, 0]) == true, "the window is closed")
        // The sender gives the first message up: those that were kept are delivered, in order.
        var value: [UInt8] = []
        value.append(number: UInt32(2_100))
        value.append(number: UInt16(0))
        value.append(number: UInt16(0))
        victim.send(.forwardTSN, value)
        var count = 0
        while victim.association.dequeueMessage() != nil { count += 1 }
        #expect(count == Reassembly.maximumParts)
        #expect(!victim.association.hasEnded)
    }

    @Test("Numbers beyond the window are ignored")
    func farNumbers() {
        let victim = Victim()
        victim.data(flags: 3, length: 10, ahead: 9_000)
        #expect(victim.association.firstMessage == nil)
    }

    @Test("A SACK for what was never sent, and one with disordered gaps, end the association")
    func wrongAcknowledgements() {
        for gaps: [UInt16] in [[], [5, 3], [1, 1]] {
            let victim = Victim()
            var value: [UInt8] = []
            // The number before the server's first is unknown here: half a turn away from any is certainly not sent.
            value.append(number: UInt32(gaps.isEmpty ? 0x4000_0000 : 0) &+ victim.firstNumber &- 1)
            value.append(number: UInt32(1_000))
            value.append(number: UInt16(gaps.count / 2))
            value.append(number: UInt16(0))
            for gap in gaps { value.append(number: gap) }
            victim.send(.sack, value)
            #expect(victim.association.hasEnded)
        }
    }

    @Test("A live association answers one new INIT per second, and survives a restart")
    func restarts() {
        let victim = Victim()
        _ = victim.output()
        for tag in 200..<260 {
            victim.send(
                .initiation, Initiation(tag: UInt32(tag), window: 1_000, streams: 1, firstTSN: 1).bytes, tag: 0)
        }
        #expect(victim.output().count == 1)
        victim.now = victim.now + .seconds(2)
        victim.connect(tag: 500)
        #expect(victim.association.consumeEvents().last == .restarted)
        victim.data(flags: 3, length: 10)
        #expect(victim.association.firstMessage?.payload.count == 10)
    }

    @Test("Lengths of zero, unknown chunks and wrong tags, ports and checksums change nothing")
    func malformedPackets() {
        let victim = Victim()
        _ = victim.output()
        #expect(!victim.send(.data, [], tag: 1))
        var packet = [UInt8](repeating: 0, count: 400)
        packet.withUnsafeMutableBytes {
            $0.write(UInt16(5_000), at: 0)
            $0.write(UInt16(5_000), at: 2)
            $0.write(victim.tag, at: 4)
        }
        // Without a checksum, which is announced as accepted; a chunk of length 0.
        #expect(packet.withUnsafeBytes { victim.association.receive($0, at: victim.now) })
        packet[8] = 1
        #expect(!packet.withUnsafeBytes { victim.association.receive($0, at: victim.now) })
        packet[8] = 0
        for offset in stride(from: 12, to: 400, by: 4) { (packet[offset], packet[offset + 3]) = (0xff, 4) }
        #expect(packet.withUnsafeBytes { victim.association.receive($0, at: victim.now) })
        packet[1] = 1
        #expect(!packet.withUnsafeBytes { victim.association.receive($0, at: victim.now) })
        #expect(victim.output().isEmpty && !victim.association.hasEnded)
    }

    @Test("FORWARD TSN with streams that were never used, and resets of them, create nothing")
    func forwardTSN() {
        let victim = Victim()
        var value: [UInt8] = []
        value.append(number: UInt32(105))
        for stream in 0..<200 {
            value.append(number: UInt16(stream))
            value.append(number: UInt16(9))
        }
        victim.send(.forwardTSN, value)
        victim.data(flags: 3, stream: 3, sequence: 0, length: 10, ahead: 6)
        #expect(victim.association.firstMessage?.stream == 3, "stream 3 starts at 0 still")
    }

    @Test("Messages on a thousand streams: 256 get a sequence number, the others are refused")
    func manyStreams() {
        let victim = Victim()
        var count = 0
        for stream in 0..<1_000 {
            victim.data(flags: 3, stream: UInt16(stream), length: 10)
            while victim.association.dequeueMessage() != nil { count += 1 }
        }
        #expect(count == 256)
    }

    @Test("A peer that takes no answer and opens its channel again and again has 256 of them queued, and no more")
    func endlessOpening() {
        let session = DataChannelSession(
            settings: .init(), remotePort: 5_000, longestRemoteMessage: 65_536, isDTLSClient: false,
            random: RandomSource(seed: 5))
        let victim = Victim(session), terms = DataChannelTerms(label: "again")
        for request in 0..<1_000 {
            victim.openAndClose(2, terms, request: UInt32(request))
            victim.now = victim.now + .milliseconds(10)
        }
        #expect(session.consumeEvents().filter { $0 == .opened(terms) }.count == 256)
        #expect(session.bufferedBytes == 256, "an answer is one byte")
        #expect(!session.hasEnded && session.isRelieved)
        // They are on their way: there is room again.
        _ = victim.output()
        victim.openAndClose(2, terms, request: 1_000)
        #expect(session.consumeEvents().contains(.opened(terms)))
    }

    @Test("Of the RE-CONFIG chunks in one packet four are processed")
    func bundledRequests() {
        let victim = Victim()
        _ = victim.association.consumeEvents()
        var buffer = [UInt8](repeating: 0, count: 1_160)
        let length = buffer.withUnsafeMutableBytes {
            var packet = PacketWriter($0, from: 5_000, to: 5_000, tag: victim.tag)
            for number in 0..<10 {
                var request: [UInt8] = []
                request.append(number: UInt32(100 + number))
                request.append(number: UInt32(0))
                request.append(number: UInt32(99))
                request.append(number: UInt16(number))
                var value: [UInt8] = []
                value.append(parameter: 13, request)
                let fits = packet.chunk(.reconfiguration, value)
                #expect(fits)
            }
            return packet.finish(withChecksum: true)
        }
        let isTaken = buffer[..<length].withUnsafeBytes { victim.association.receive($0, at: victim.now) }
        #expect(isTaken)
        let expected = (0..<4).map { SCTPAssociation.Event.resetByPeer([UInt16($0)]) }
        #expect(victim.association.consumeEvents() == expected)
    }

    @Test("Of a thousand streams that wait to be closed only those of one request are examined")
    func crowdOfClosings() {
        var resets = StreamReset(firstTSN: 1, peerFirstTSN: 1), examined = 0
        for stream in 0..<1_000 { resets.close(UInt16(stream)) }
        var buffer = [UInt8](repeating: 0, count: 1_160)
        buffer.withUnsafeMutableBytes {
            var packet = PacketWriter($0, from: 5_000, to: 5_000, tag: 1)
            resets.write(into: &packet, last: 0, timeout: .seconds(1), at: .zero) { _ in
                examined += 1
                return true
            }
            #expect(!packet.isEmpty)
        }
        #expect(examined == 64)
    }

    @Test("A stream is in use until its last fragment is acknowledged")
    func streamsInUse() {
        var outstanding = OutstandingData(firstTSN: 1)
        for (message, stream) in [UInt16(7), 7, 9].enumerated() {
            let fragment = Fragment(
                payload: [1], range: 0..<1, stream: stream, sequence: 0, identifier: 53, message: Int64(message),
                isOrdered: true, reliability: .reliable, queuedAt: .zero)
            _ = outstanding.append(fragment, at: .zero)
        }
        for (number, used) in [(UInt32(1), true), (2, false), (3, false)] {
            var value: [UInt8] = []
            value.append(number: number)
            value.append(number: UInt32(1_000))
            value.append(number: UInt32(0))
            value.withUnsafeBytes {
                guard let report = Acknowledgement($0) else { return }
                _ = outstanding.apply(report, at: .zero)
            }
            #expect(outstanding.uses(7) == used && outstanding.uses(9) == (number < 3))
        }
    }

    @Test("Random bytes in the place of chunks never crash", arguments: 1...20)
    func noise(seed: Int) {
        print("seed \(seed)")
        var random = RandomSource(seed: UInt64(seed))
        let victim = Victim()
        for _ in 0..<2_000 {
            let types: [ChunkType] = [
                .data, .sack, .forwardTSN, .reconfiguration, .initiationAck, .heartbeat, .cookieEcho,
            ]
            let value = (0..<Int(random.next() % 60)).map { _ in UInt8(truncatingIfNeeded: random.next() % 4) }
            victim.send(types[Int(random.next() % 7)], flags: UInt8(random.next() % 16), value)
            if random.next() % 50 == 0 {
                victim.now = victim.now + .milliseconds(100); victim.association.advance(to: victim.now)
            }
            _ = victim.output()
            if victim.association.hasEnded { return }
        }
    }
}
