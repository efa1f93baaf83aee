import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Messages")
struct MessageTests {
    private static let text = RoomMessage(topic: "chat", content: .text("hi"))

    /// A member with open channels.
    private static func open(_ labels: [String], _ session: SessionID, _ bench: inout RoomBench) throws -> PeerID {
        let sdp = ClientDescriptions(ufrag: "u\(session.rawValue.suffix(6))").dataOffer()
        let answer = try bench.step { (room, turn) throws(RoomError) in
            try room.offer(session, connection: "pub", sdp: sdp, turn: &turn)
        }
        #expect(answer.sdp.contains("a=sctp-port:5000") && answer.sdp.contains("a=max-message-size:260096"))
        let accepted = bench.consumeCommands().compactMap { command -> (PeerID, DataTransport)? in
            if case .acceptData(let peer, let transport) = command { (peer, transport) } else { nil }
        }
        let (peer, transport) = try #require(accepted.first)
        #expect(transport == DataTransport(port: 5_000, longestMessage: 262_144) && accepted.count == 1)
        for label in labels {
            try bench.step { (room, turn) throws(RoomError) in
                room.receive(.dataChannelOpened(peer, DataChannelTerms(label: label)), turn: &turn)
            }
        }
        return peer
    }

    private static func received(_ session: SessionID, _ bench: inout RoomBench) -> [RoomMessage] {
        bench.consumeEvents(session).compactMap { if case .messageReceived(let message) = $0 { message } else { nil } }
    }

    @Test(
        "Whom the server offers a connection at once has a data section first, on which the server opens both channels")
    func channelsOfTheServer() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada") { request in
            request.offering = .serverAtOnce
            request.receivingConnection = Room.serverConnection
        }
        let sdp = try #require(bench.lastOffer(ada)?.sdp)
        #expect(sdp.split(separator: "\r\nm=").dropFirst().map { $0.prefix(11) } == ["application"])
        #expect(sdp.contains(" UDP/DTLS/SCTP webrtc-datachannel\r\n") && !sdp.contains("a=rtcp-mux"))
        let peer = try #require(bench.room.connections(of: ada).first?.peer)
        _ = bench.consumeCommands()
        try bench.answerOffers(ada)
        let commands = bench.consumeCommands()
        #expect(commands.contains(.acceptData(peer, DataTransport(port: 5_000, longestMessage: 262_144))))
        let opened = commands.compactMap { if case .openDataChannel(peer, let terms) = $0 { terms } else { nil } }
        #expect(
            opened == [
                DataChannelTerms(label: "reliable"),
                DataChannelTerms(label: "lossy", isOrdered: false, reliability: .retransmissions(0)),
            ])
        // Media that comes later has sections of its own; the data section and its channels stay as they are.
        try bench.offer(try bench.join("bob"), [.audio("0")])
        try bench.answerOffers(ada)
        #expect(bench.room.subscriptions(of: ada).map(\.state) == [.active])
        #expect(!bench.consumeCommands().contains { if case .openDataChannel = $0 { true } else { false } })
        try bench.step { (room, turn) throws(RoomError) in
            for terms in opened { room.receive(.dataChannelOpened(peer, terms), turn: &turn) }
            try room.sendFromServer(Self.text, turn: &turn)
        }
        #expect(bench.messages.last?.receivers.map(\.label) == ["reliable"])
    }

    @Test("A member without a channel receives no message where its signalling carries none")
    func channelsOnly() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        let bob = try bench.join("bob") {
            $0.dataProtocol = DataProtocol(
                name: "other", reliableLabel: "_reliable", lossyLabel: "_lossy", signallingCarriesMessages: false)
        }
        try bench.perform(.send(Self.text), ada)
        #expect(Self.received(bob, &bench).isEmpty)
        let peer = try Self.open(["_reliable"], bob, &bench)
        try bench.perform(.send(Self.text), ada)
        #expect(bench.messages.last?.receivers.map(\.peer) == [peer])
    }

    @Test("A message goes over a channel to whom has one, over the socket to others, and not to its sender")
    func ways() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada"), bob = try bench.join("bob"), cleo = try bench.join("cleo")
        let caster = try bench.join("caster") { $0.profile = .publishOnly }
        let peer = try Self.open(["reliable"], bob, &bench)
        try bench.perform(.send(Self.text), ada)
        #expect(bench.messages.count == 1)
        #expect(bench.messages.first?.receivers == [MessageReceiver(peer: peer, label: "reliable", protocol: .martlet)])
        #expect(bench.messages.first?.message.identity == "ada")
        #expect(Self.received(cleo, &bench).map(\.content) == [.text("hi")])
        #expect(Self.received(ada, &bench).isEmpty && Self.received(bob, &bench).isEmpty)
        #expect(Self.received(caster, &bench).isEmpty, "who only publishes gets none unless it asks")
        // A channel that was closed is not used any more.
        try bench.step { (room, turn) throws(RoomError) in
            room.receive(.dataChannelClosed(peer, label: "reliable", .receiverTooSlow), turn: &turn)
        }
        let events = bench.consumeEvents(bob)
        #expect(events == [.channelClosed(connection: "pub", label: "reliable", reason: "receiverTooSlow")])
        try bench.perform(.send(Self.text), ada)
        #expect(bench.messages.count == 1 && Self.received(bob, &bench).count == 1)
    }

    @Test("A lossy message takes the lossy channel, or the reliable one where there is no other")
    func labels() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada"), bob = try bench.join("bob"), cleo = try bench.join("cleo")
        _ = try Self.open(["reliable", "lossy"], bob, &bench)
        _ = try Self.open(["reliable"], cleo, &bench)
        try bench.perform(.send(RoomMessage(topic: "", content: .binary([1]), isReliable: false)), ada)
        #expect(bench.messages.first?.receivers.map(\.label) == ["lossy", "reliable"])
    }

    @Test("Refusals: permission, policy, size, receivers, rate; each with its reason")
    func refusals() throws {
        var limits = RoomLimits()
        limits.messagesPerSecond = 10
        var bench = RoomBench(limits: limits)
        let ada = try bench.join("ada"), bob = try bench.join("bob")
        func code(_ message: RoomMessage) -> RoomError.Code? {
            bench.refusal(of: .send(message), by: ada)
        }
        #expect(code(RoomMessage(topic: "t", content: .text("x"), to: ["nobody"])) == .participantNotFound)
        #expect(code(RoomMessage(topic: "t", content: .text("x"), to: ["nobody", "bob"])) == nil)
        #expect(Self.received(bob, &bench).count == 1)
        #expect(code(RoomMessage(topic: String(repeating: "t", count: 257), content: .text("x"))) == .tooLarge)
        #expect(
            code(RoomMessage(topic: "t", content: .binary([UInt8](repeating: 0, count: 262_145)))) == .tooLarge)
        // One to nobody and one to bob are counted already.
        for _ in 0..<18 { #expect(code(Self.text) == nil) }
        #expect(code(Self.text) == .rateLimited)
        bench.now = bench.now + .seconds(10)
        var permissions = Permissions()
        permissions.canPublishData = false
        try bench.setPermissions(permissions, try #require(bench.info(ada)).sid)
        #expect(code(Self.text) == .permissionDenied)
        permissions.canPublishData = true
        try bench.setPermissions(permissions, try #require(bench.info(ada)).sid)
        var policy = bench.room.policy
        policy.allowsMessages = false
        try bench.setPolicy(policy)
        #expect(code(Self.text) == .permissionDenied)
        // The API may.
        _ = bench.consumeEvents(bob)
        try bench.step { (room, turn) throws(RoomError) in try room.sendFromServer(Self.text, turn: &turn) }
        #expect(Self.received(bob, &bench).map(\.identity) == [nil])
    }

    @Test("Messages over a data channel are not refused by number: their sender's window is their limit")
    func pacedByTheirChannel() throws {
        var limits = RoomLimits()
        limits.messagesPerSecond = 10
        var bench = RoomBench(limits: limits)
        let ada = try bench.join("ada"), bob = try bench.join("bob")
        let peer = try Self.open(["reliable"], ada, &bench)
        for _ in 0..<100 {
            try bench.step { (room, turn) throws(RoomError) in
                try room.send(Self.text, from: ada, over: peer, turn: &turn)
            }
        }
        #expect(Self.received(bob, &bench).count == 100)
    }

    @Test("What one protocol alone understands reaches only members that speak it")
    func foreign() throws {
        var bench = RoomBench()
        let other = DataProtocol(
            name: "other", reliableLabel: "_reliable", lossyLabel: "_lossy", signallingCarriesMessages: false)
        let ada = try bench.join("ada") { $0.dataProtocol = other }
        let bob = try bench.join("bob"), cleo = try bench.join("cleo") { $0.dataProtocol = other }
        let peer = try Self.open(["_reliable"], cleo, &bench)
        _ = try Self.open(["reliable"], bob, &bench)
        try bench.perform(.send(RoomMessage(topic: "", content: .foreign("other", [1, 2]))), ada)
        #expect(bench.messages.first?.receivers.map(\.peer) == [peer])
    }

    @Test(
        "What a member sends again after a resume reaches nobody twice; its client learns which of its messages was the last"
    )
    func sentAgain() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada"), bob = try bench.join("bob")
        let peer = try Self.open(["reliable"], ada, &bench)
        func send(_ sequence: UInt32?, _ text: String, _ bench: inout RoomBench) throws {
            var message = RoomMessage(topic: "t", content: .text(text))
            message.sequence = sequence
            try bench.step { (room, turn) throws(RoomError) in
                try room.send(message, from: ada, over: peer, turn: &turn)
            }
        }
        for (sequence, text) in [(1, "a"), (2, "b"), (2, "b"), (1, "a"), (3, "c"), (nil, "d")] as [(UInt32?, String)] {
            try send(sequence, text, &bench)
        }
        #expect(Self.received(bob, &bench).map(\.content) == [.text("a"), .text("b"), .text("c"), .text("d")])
        #expect(bench.room.lastSequence(of: ada) == 3)
    }

    @Test("What came too early is delivered when it is sent again, and what was delivered costs nothing then")
    func refusedBefore() throws {
        var limits = RoomLimits()
        limits.messagesPerSecond = 1
        var bench = RoomBench(limits: limits)
        let ada = try bench.join("ada"), bob = try bench.join("bob")
        func send(_ sequence: UInt32, _ bench: inout RoomBench) -> RoomError.Code? {
            var message = RoomMessage(topic: "t", content: .text("\(sequence)"))
            message.sequence = sequence
            return bench.refusal(of: .send(message), by: ada)
        }
        var codes: [RoomError.Code?] = []
        for sequence in [1, 2, 2, 3] as [UInt32] { codes.append(send(sequence, &bench)) }
        #expect(codes == [nil, nil, nil, .rateLimited])
        bench.now = bench.now + .seconds(2)
        codes = [send(3, &bench), send(3, &bench)]
        #expect(codes == [nil, nil])
        #expect(Self.received(bob, &bench).map(\.content) == [.text("1"), .text("2"), .text("3")])
    }

    @Test(
        "What the application's server sends again with the same mark is delivered once; without a mark, and with another, each time"
    )
    func sentAgainByServer() throws {
        var bench = RoomBench()
        let bob = try bench.join("bob")
        for nonce in [[1], [1], [2], [], [], [UInt8](repeating: 7, count: 65), [UInt8](repeating: 7, count: 65)]
            as [[UInt8]]
        {
            var message = Self.text
            message.nonce = nonce
            try bench.step { (room, turn) throws(RoomError) in try room.sendFromServer(message, turn: &turn) }
        }
        #expect(Self.received(bob, &bench).count == 6)
    }
}
