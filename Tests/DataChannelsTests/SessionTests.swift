import Primitives
import Testing

@testable import DataChannels

@Suite struct SessionTests {
    private static let unlimited: DataChannelSettings = {
        var settings = DataChannelSettings()
        settings.longestMessage = 262_144
        settings.messagesPerSecond = 1_000_000
        settings.messagesAtOnce = 1_000_000
        settings.bytesPerSecond = 1_000_000_000
        settings.bytesAtOnce = 1_000_000_000
        return settings
    }()

    @Test("Channels open from both sides with their label, order and reliability")
    func channelsOpen() {
        let pair = SessionPair()
        let offered = DataChannelTerms(
            label: "ünï", subprotocol: "p", isOrdered: false, reliability: .retransmissions(3))
        let served = DataChannelTerms(label: "_lossy", isOrdered: false, reliability: .lifetime(.milliseconds(150)))
        #expect(pair.client.open(offered, at: pair.now))
        #expect(pair.server.open(served, at: pair.now))
        pair.run(for: .milliseconds(200))
        #expect(Set(pair.serverEvents) == [.opened(offered), .opened(served)])
        #expect(Set(pair.clientEvents) == [.opened(offered), .opened(served)])
    }

    @Test("A channel that is opened before the association is up opens with it, also when both sides send INIT")
    func crossingInitiations() {
        let pair = SessionPair(startsBoth: true)
        #expect(pair.server.isEstablished && pair.client.isEstablished)
        #expect(pair.server.open(DataChannelTerms(label: "a"), at: pair.now))
        pair.run(for: .milliseconds(200))
        #expect(pair.clientEvents == [.opened(DataChannelTerms(label: "a"))])
    }

    @Test("Messages of 0 bytes to 256 kB arrive unchanged both ways", arguments: [0, 1, 1_132, 1_133, 65_536, 262_144])
    func sizes(length: Int) {
        let pair = SessionPair(settings: Self.unlimited)
        #expect(pair.client.open(DataChannelTerms(label: "a"), at: pair.now))
        pair.run(for: .milliseconds(200))
        let binary = payload(length, length: length)
        let text = DataPayload(isText: true, bytes: [UInt8](repeating: 0x61, count: length))
        for message in [binary, text] {
            #expect(pair.client.send(message, on: "a", at: pair.now) == .queued)
            #expect(pair.server.send(message, on: "a", at: pair.now) == .queued)
        }
        pair.run(for: .seconds(10)) { pair.received.count == 2 && pair.receivedByClient.count == 2 }
        #expect(pair.received == [binary, text])
        #expect(pair.receivedByClient == [binary, text])
    }

    @Test("Over 10 % loss, reordering and duplicates, reliable messages arrive once and in order", arguments: 1...12)
    func reliableOverLoss(seed: Int) {
        print("seed \(seed)")
        let path = SessionPair.Path(loss: 100, duplicates: 50, late: 100)
        let pair = SessionPair(seed: UInt64(seed), path: path, settings: Self.unlimited)
        pair.run(for: .seconds(20)) { pair.client.isEstablished && pair.server.isEstablished }
        #expect(pair.client.open(DataChannelTerms(label: "a"), at: pair.now))
        let messages = (0..<120).map { payload($0, length: $0 % 10 == 0 ? 20_000 : 10 + $0 * 7) }
        for message in messages { #expect(pair.client.send(message, on: "a", at: pair.now) == .queued) }
        pair.run(for: .seconds(120)) { pair.received.count >= messages.count }
        pair.run(for: .seconds(2))
        #expect(pair.received == messages)
        #expect(pair.client.bufferedBytes == 0)
    }

    @Test(
        "Over 10 % loss, messages without retransmissions arrive but for the lost ones, never twice", arguments: 1...12)
    func lossyOverLoss(seed: Int) {
        print("seed \(seed)")
        let path = SessionPair.Path(loss: 100, duplicates: 50, late: 100)
        let pair = SessionPair(seed: UInt64(seed), path: path, settings: Self.unlimited)
        pair.run(for: .seconds(20)) { pair.client.isEstablished && pair.server.isEstablished }
        for (label, isOrdered) in [("a", true), ("b", false)] {
            let terms = DataChannelTerms(label: label, isOrdered: isOrdered, reliability: .retransmissions(0))
            #expect(pair.client.open(terms, at: pair.now))
        }
        pair.run(for: .seconds(20)) { pair.serverEvents.count == 2 }
        for number in 0..<300 {
            let label = number % 2 == 0 ? "a" : "b"
            #expect(
                pair.client.send(payload(number, length: number % 20 == 0 ? 3_000 : 100), on: label, at: pair.now)
                    == .queued)
            pair.run(for: .milliseconds(10))
        }
        pair.run(for: .seconds(20))
        let numbers = pair.received.map { Int($0.bytes[0]) + Int($0.bytes[1]) << 8 }
        #expect(Set(numbers).count == numbers.count)
        #expect((210...299).contains(numbers.count), "\(numbers.count) of 300")
        let ordered = numbers.filter { $0 % 2 == 0 }
        #expect(ordered == ordered.sorted())
        // Nothing remains that could hold up later messages.
        pair.path = SessionPair.Path()
        pair.run(for: .seconds(5))
        pair.forgetEvents()
        for label in ["a", "b"] {
            #expect(pair.client.send(payload(7, length: 50), on: label, at: pair.now) == .queued)
        }
        pair.run(for: .seconds(1))
        #expect(pair.received.count == 2)
    }

    @Test("A closed channel reports to both sides, and its stream can be used again, twenty times over loss")
    func closeAndReopen() {
        let pair = SessionPair(path: SessionPair.Path(loss: 50), settings: Self.unlimited)
        pair.run(for: .seconds(20)) { pair.client.isEstablished && pair.server.isEstablished }
        for round in 0..<20 {
            pair.forgetEvents()
            #expect(pair.client.open(DataChannelTerms(label: "r\(round)"), at: pair.now))
            #expect(pair.client.send(payload(round, length: 5_000), on: "r\(round)", at: pair.now) == .queued)
            pair.client.close("r\(round)")
            pair.run(for: .seconds(60)) {
                pair.serverEvents.contains(.closed(label: "r\(round)", .closedByPeer))
            }
            #expect(pair.received == [payload(round, length: 5_000)], "queued messages precede the close")
            #expect(pair.serverEvents.contains(.closed(label: "r\(round)", .closedByPeer)))
            pair.run(for: .seconds(4))
        }
    }

    @Test("A lossy channel drops its oldest messages by age and by size; the newest arrive")
    func lossyAge() {
        let pair = SessionPair(settings: Self.unlimited)
        #expect(pair.server.open(DataChannelTerms(label: "a", reliability: .retransmissions(0)), at: pair.now))
        pair.run(for: .milliseconds(200))
        pair.isClientDeaf = true
        for number in 0..<1_000 {
            #expect(pair.server.send(payload(number, length: 1_000), on: "a", at: pair.now) == .queued)
            pair.run(for: .milliseconds(5))
            #expect(pair.server.bufferedBytes < 300_000)
        }
        pair.isClientDeaf = false
        pair.run(for: .seconds(10))
        #expect(pair.server.droppedMessages > 900)
        #expect(pair.receivedByClient.last == payload(999, length: 1_000))
        #expect(pair.receivedByClient.count < 100)
    }

    @Test("A receiver that takes nothing loses its reliable channel with a reason, and the queue is freed")
    func slowReceiver() {
        var settings = Self.unlimited
        settings.reliableBytes = 1_048_576
        let pair = SessionPair(settings: settings)
        #expect(pair.server.open(DataChannelTerms(label: "a"), at: pair.now))
        #expect(pair.server.open(DataChannelTerms(label: "b"), at: pair.now))
        pair.run(for: .milliseconds(200))
        pair.isClientDeaf = true
        var sent = 0
        while pair.server.send(payload(sent, length: 16_384), on: "a", at: pair.now) == .queued, sent < 1_000 {
            sent += 1
        }
        #expect((60...64).contains(sent))
        pair.run(for: .milliseconds(5))
        #expect(pair.serverEvents.contains(.closed(label: "a", .receiverTooSlow)))
        #expect(pair.server.bufferedBytes < 20_000)
        pair.isClientDeaf = false
        pair.run(for: .seconds(10))
        #expect(pair.clientEvents.contains(.closed(label: "a", .closedByPeer)))
        #expect(pair.server.send(payload(1, length: 100), on: "b", at: pair.now) == .queued)
        pair.run(for: .seconds(1))
        #expect(pair.receivedByClient.last == payload(1, length: 100))
    }

    /// A client has sent 300 messages of 1 kB to a server that takes 100 a second.
    private func heldBack() -> SessionPair {
        var settings = Self.unlimited
        settings.messagesPerSecond = 100
        settings.messagesAtOnce = 10
        let pair = SessionPair(settings: settings, clientSettings: Self.unlimited)
        #expect(pair.client.open(DataChannelTerms(label: "a"), at: pair.now))
        for number in 0..<300 {
            #expect(pair.client.send(payload(number, length: 1_000), on: "a", at: pair.now) == .queued)
        }
        return pair
    }

    @Test("Who sends more than it may is slowed by the receive window; nothing is lost")
    func inboundLimit() {
        let pair = heldBack()
        pair.run(for: .seconds(1))
        #expect((80...130).contains(pair.received.count), "\(pair.received.count)")
        pair.run(for: .seconds(4))
        #expect(pair.received == (0..<300).map { payload($0, length: 1_000) })
    }

    @Test(
        "A channel that its sender closes ends after the messages that were acknowledged on it, however long they are held"
    )
    func closedWhileHeld() {
        let pair = heldBack()
        pair.run(for: .milliseconds(300))
        pair.client.close("a")
        pair.run(for: .seconds(1))
        #expect(!pair.serverEvents.contains(.closed(label: "a", .closedByPeer)))
        pair.run(for: .seconds(4))
        #expect(pair.received == (0..<300).map { payload($0, length: 1_000) })
        #expect(pair.serverEvents.contains(.closed(label: "a", .closedByPeer)))
    }

    @Test(
        "What the application has not released stays in the window, which stops the sender; nothing is lost, and nothing grows"
    )
    func heldMessages() {
        var settings = Self.unlimited
        settings.bytesInHand = 65_536
        let pair = SessionPair(settings: settings, clientSettings: Self.unlimited)
        #expect(pair.client.open(DataChannelTerms(label: "a"), at: pair.now))
        let messages = (0..<200).map { payload($0, length: 16_384) }
        for message in messages { #expect(pair.client.send(message, on: "a", at: pair.now) == .queued) }
        pair.run(for: .seconds(5))
        // 64 kB in hand; the window of 512 kB is full; the rest is still the sender's.
        #expect(pair.received.count == 4)
        #expect(pair.client.bufferedBytes > (200 - 4 - 40) * 16_384)
        // Somebody waits for one of them longer than for the others.
        pair.server.hold(messages[0].cost)
        pair.server.release(messages[0].cost, at: pair.now)
        pair.run(for: .seconds(1))
        #expect(pair.received.count == 4)
        for message in messages {
            pair.server.release(message.cost, at: pair.now)
            pair.run(for: .milliseconds(60))
        }
        pair.run(for: .seconds(20)) { pair.received.count == messages.count }
        #expect(pair.received == messages)
    }

    @Test(
        "A lossy message passes reliable ones that wait for the application; these come afterwards, whole and in order")
    func lossyOvertakes() {
        var settings = Self.unlimited
        settings.bytesInHand = 65_536
        let pair = SessionPair(settings: settings, clientSettings: Self.unlimited)
        let lossy = DataChannelTerms(label: "b", isOrdered: false, reliability: .retransmissions(0))
        #expect(pair.client.open(DataChannelTerms(label: "a"), at: pair.now) && pair.client.open(lossy, at: pair.now))
        let messages = (0..<12).map { payload($0, length: 16_384) }, late = payload(99, length: 100)
        for message in messages { #expect(pair.client.send(message, on: "a", at: pair.now) == .queued) }
        pair.run(for: .seconds(3))
        #expect(pair.received == Array(messages.prefix(4)))
        #expect(pair.client.send(late, on: "b", at: pair.now) == .queued)
        pair.run(for: .milliseconds(100))
        #expect(pair.received == messages.prefix(4) + [late])
        for message in messages { pair.server.release(message.cost, at: pair.now) }
        pair.run(for: .seconds(1))
        #expect(pair.received == messages.prefix(4) + [late] + messages.dropFirst(4))
    }

    @Test("A lossy message that arrived before its channel's OPEN was processed passes what is held afterwards")
    func lateChannel() {
        var settings = Self.unlimited
        settings.bytesInHand = 65_536
        let pair = SessionPair(settings: settings, clientSettings: Self.unlimited)
        // With a lossy channel there is a search from the first held message on.
        for terms in [DataChannelTerms(label: "a"), DataChannelTerms(label: "c", reliability: .retransmissions(0))] {
            #expect(pair.client.open(terms, at: pair.now))
        }
        let messages = (0..<20).map { payload($0, length: 16_384) }, late = payload(99, length: 100)
        for message in messages.prefix(12) { #expect(pair.client.send(message, on: "a", at: pair.now) == .queued) }
        pair.run(for: .seconds(3))
        #expect(pair.client.open(DataChannelTerms(label: "b", reliability: .retransmissions(0)), at: pair.now))
        pair.run(for: .seconds(1))
        for message in messages.dropFirst(12) { #expect(pair.client.send(message, on: "a", at: pair.now) == .queued) }
        pair.run(for: .seconds(3))
        #expect(pair.client.send(late, on: "b", at: pair.now) == .queued)
        pair.run(for: .seconds(1))
        #expect(pair.received == Array(messages.prefix(4)), "its channel is not open")
        // The OPEN is behind the twelfth message, and needs no room.
        for message in messages.prefix(8) { pair.server.release(message.cost, at: pair.now) }
        pair.run(for: .milliseconds(100))
        #expect(pair.received == messages.prefix(12) + [late])
        for message in messages.dropFirst(8) { pair.server.release(message.cost, at: pair.now) }
        pair.run(for: .seconds(1))
        #expect(pair.received == messages.prefix(12) + [late] + messages.dropFirst(12))
    }

    @Test(
        "A peer is congested from a long queue on until half of it is left; its reliable channels can be closed for it, lossy ones stay"
    )
    func congestion() {
        let pair = SessionPair(settings: Self.unlimited)
        #expect(pair.server.open(DataChannelTerms(label: "a"), at: pair.now))
        let lossy = DataChannelTerms(label: "b", isOrdered: false, reliability: .retransmissions(0))
        #expect(pair.server.open(lossy, at: pair.now))
        pair.run(for: .milliseconds(200))
        for number in 0..<32 {
            #expect(pair.server.send(payload(number, length: 16_384), on: "a", at: pair.now) == .queued)
        }
        #expect(!pair.server.isCongested)
        #expect(pair.server.send(payload(32, length: 16_384), on: "a", at: pair.now) == .queued)
        #expect(pair.server.isCongested && !pair.server.isRelieved)
        pair.run(for: .seconds(20)) { pair.server.isRelieved }
        #expect((250_000...320_000).contains(pair.server.deliveredBytes), "\(pair.server.deliveredBytes)")
        pair.isClientDeaf = true
        pair.forgetEvents()
        pair.server.closeSlowChannels()
        pair.run(for: .milliseconds(5))
        #expect(pair.serverEvents == [.closed(label: "a", .receiverTooSlow)])
    }

    @Test("An ABORT ends all channels of the other side; a message longer than the peer allows is refused")
    func abort() {
        let pair = SessionPair(longestRemoteMessage: 1_000)
        #expect(pair.client.open(DataChannelTerms(label: "a"), at: pair.now))
        pair.run(for: .milliseconds(200))
        #expect(pair.client.send(payload(1, length: 1_001), on: "a", at: pair.now) == .tooLong)
        #expect(pair.client.send(payload(1, length: 1), on: "x", at: pair.now) == .noChannel)
        pair.client.abort(at: pair.now)
        pair.run(for: .milliseconds(200))
        #expect(pair.serverEvents.suffix(2) == [.closed(label: "a", .associationEnded), .ended(.closedByPeer)])
        #expect(pair.client.nextDeadline == .distantFuture && pair.server.nextDeadline == .distantFuture)
    }

    @Test("The 65th channel is closed at once")
    func tooManyChannels() {
        let pair = SessionPair(
            clientSettings: {
                var settings = DataChannelSettings(); settings.channels = 100; return settings
            }())
        for number in 0..<66 { #expect(pair.client.open(DataChannelTerms(label: "\(number)"), at: pair.now)) }
        pair.run(for: .seconds(5))
        #expect(pair.serverEvents.count == 64)
        #expect(pair.clientEvents.contains(.closed(label: "65", .closedByPeer)))
    }
}
