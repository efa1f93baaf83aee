import DataChannels
import MediaControl
import Primitives
import Simulation
import Testing

@testable import MediaEngine

@Suite("Messages through an engine, over real DTLS in virtual time")
struct DataTests {
    private static let room = RoomID(1)
    private static let terms = DataChannelTerms(label: "reliable")

    /// Clients with one open channel each.
    private static func harness(_ count: Int, _ change: (inout EngineConfiguration) -> Void = { _ in }) throws
        -> EngineHarness
    {
        var configuration = EngineConfiguration()
        change(&configuration)
        let harness = try EngineHarness(configuration: configuration)
        harness.apply(.addRoom(room))
        for _ in 0..<count {
            let client = harness.addClient(room: room)
            harness.apply(.acceptData(client.id, DataTransport(port: 5_000, longestMessage: 65_536)))
            client.transport.useData(at: harness.now)
            harness.withData(of: client) { _ = $0.open(terms, at: harness.now) }
            harness.run(for: .milliseconds(200))
            #expect(harness.events.contains(.dataChannelOpened(client.id, terms)))
        }
        harness.events = []
        return harness
    }

    private static func received(_ client: TestClient) -> [DataPayload] {
        client.transport.data?.consumeEvents().compactMap {
            if case .message(_, let payload) = $0 { payload } else { nil }
        } ?? []
    }

    @Test("A message goes up as an event, and one command sends it to many", arguments: [1, 1_133, 65_536])
    func relay(length: Int) throws {
        let harness = try Self.harness(3)
        let payload = DataPayload(isText: false, bytes: (0..<length).map { UInt8($0 & 0xff) })
        let sender = harness.clients[0]
        harness.withData(of: sender) { #expect($0.send(payload, on: "reliable", at: harness.now) == .queued) }
        harness.run(for: .seconds(1))
        #expect(harness.events == [.dataReceived(sender.id, label: "reliable", payload)])
        let receivers = harness.clients.dropFirst().map { DataReceiver(peer: $0.id, label: "reliable") }
        harness.apply(.sendData(DataDelivery(payload: payload, receivers: Array(receivers))))
        harness.run(for: .seconds(1))
        for client in harness.clients.dropFirst() { #expect(Self.received(client) == [payload]) }
        #expect(harness.engine.statistics.data.sent == 2 && harness.engine.statistics.data.received == 1)
    }

    @Test("The server opens and closes channels; messages for peers without one are counted")
    func serverOpened() throws {
        let harness = try Self.harness(1)
        let client = harness.clients[0]
        let terms = DataChannelTerms(label: "_lossy", isOrdered: false, reliability: .retransmissions(0))
        harness.apply(.openDataChannel(client.id, terms))
        harness.run(for: .milliseconds(200))
        #expect(harness.events == [.dataChannelOpened(client.id, terms)])
        #expect(client.transport.data?.consumeEvents().contains(.opened(terms)) == true)
        harness.apply(.closeDataChannel(client.id, label: "_lossy"))
        harness.run(for: .milliseconds(200))
        #expect(client.transport.data?.consumeEvents() == [.closed(label: "_lossy", .closedByPeer)])
        let payload = DataPayload(text: "x")
        harness.apply(
            .sendData(DataDelivery(payload: payload, receivers: [DataReceiver(peer: client.id, label: "_lossy")])))
        #expect(harness.engine.statistics.data.undeliverable == 1)
    }

    @Test("A message on a channel that the server has closed is ignored and counted, once")
    func ignored() throws {
        let harness = try Self.harness(1)
        let client = harness.clients[0]
        client.transport.isKilled = true
        harness.apply(.closeDataChannel(client.id, label: "reliable"))
        client.transport.isKilled = false
        harness.withData(of: client) {
            #expect($0.send(DataPayload(text: "late"), on: "reliable", at: harness.now) == .queued)
        }
        harness.run(for: .seconds(1))
        #expect(harness.engine.statistics.data.ignored == 1)
        #expect(harness.engine.statistics.data.received == 0)
    }

    @Test("A receiver that takes nothing loses its channel; the others get everything")
    func slowReceiver() throws {
        let harness = try Self.harness(3) { $0.data.reliableBytes = 1_048_576 }
        let slow = harness.clients[0]
        slow.transport.isKilled = true
        let receivers = harness.clients.map { DataReceiver(peer: $0.id, label: "reliable") }
        let payload = DataPayload(isText: false, bytes: [UInt8](repeating: 3, count: 16_384))
        for _ in 0..<100 {
            harness.apply(.sendData(DataDelivery(payload: payload, receivers: receivers)))
            harness.run(for: .milliseconds(20))
        }
        #expect(harness.events.contains(.dataChannelClosed(slow.id, label: "reliable", .receiverTooSlow)))
        #expect(harness.engine.statistics.data.channelsClosedAsSlow == 1)
        for client in harness.clients.dropFirst() { #expect(Self.received(client).count == 100) }
    }

    @Test("SCTP from a peer without a data section is dropped and counted")
    func unexpected() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Self.room))
        let client = harness.addClient(room: Self.room)
        client.transport.useData(at: harness.now)
        harness.withData(of: client) { _ in }
        harness.run(for: .milliseconds(100))
        #expect(harness.engine.statistics.drops[.dataUnexpected] > 0)
    }
}
