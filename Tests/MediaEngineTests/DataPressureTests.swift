import DataChannels
import MediaControl
import Primitives
import Simulation
import Testing

@testable import MediaEngine

@Suite("Back-pressure: a receiver of reliable messages slows their sender, up to a limit")
struct DataPressureTests {
    private static let room = RoomID(1)
    private static let label = "reliable"

    /// One message of a file: its number, and bytes that follow from it.
    private static func part(_ number: Int, length: Int = 15_000) -> DataPayload {
        var bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number &* 31), count: length)
        bytes[0] = UInt8(truncatingIfNeeded: number)
        bytes[1] = UInt8(truncatingIfNeeded: number >> 8)
        return DataPayload(isText: false, bytes: bytes)
    }

    /// A client without limits of its own, or one that takes so many bytes a second.
    private static func settings(taking bytesPerSecond: Int = 1_000_000_000) -> DataChannelSettings {
        var settings = DataChannelSettings()
        settings.messagesPerSecond = 1_000_000
        settings.messagesAtOnce = 1_000_000
        settings.bytesPerSecond = bytesPerSecond
        settings.bytesAtOnce = 65_536
        return settings
    }

    /// An engine with one channel of each client, and a control plane that gives everybody what the first one sends.
    private final class Stage {
        let harness: EngineHarness
        private(set) var closed: [MediaEvent] = []
        /// Parts that each client has received, in order.
        private(set) var received: [Int]
        private(set) var sent = 0
        private let parts: Int

        init(_ clients: [DataChannelSettings], parts: Int) throws {
            self.parts = parts
            received = clients.map { _ in 0 }
            var configuration = EngineConfiguration()
            configuration.data.messagesPerSecond = 100_000
            configuration.data.bytesPerSecond = 100_000_000
            harness = try EngineHarness(configuration: configuration)
            harness.apply(.addRoom(room))
            for settings in clients {
                let client = harness.addClient(room: room)
                harness.apply(.acceptData(client.id, DataTransport(port: 5_000, longestMessage: 65_536)))
                client.transport.useData(settings: settings, at: harness.now)
                harness.withData(of: client) { _ = $0.open(DataChannelTerms(label: label), at: harness.now) }
                harness.run(for: .milliseconds(200))
                _ = client.transport.data?.consumeEvents()
            }
            harness.events = []
        }

        /// Lets time pass; the first client sends whenever little waits in its own buffer.
        func run(for time: TimeSpan, until isDone: () -> Bool = { false }) {
            let end = harness.now + time
            while harness.now < end, !isDone() {
                harness.withData(of: harness.clients[0]) { session in
                    while sent < parts, session.bufferedBytes < 262_144 {
                        #expect(session.send(part(sent), on: label, at: harness.now) == .queued)
                        sent += 1
                    }
                }
                harness.run(for: .milliseconds(20))
                relay()
                take()
            }
        }

        private func relay() {
            while !harness.events.isEmpty {
                let events = harness.events
                harness.events = []
                for event in events {
                    guard case .dataReceived(let sender, let label, let payload) = event else {
                        closed.append(event)
                        continue
                    }
                    let receivers = harness.clients.filter { $0.id != sender }.map {
                        DataReceiver(peer: $0.id, label: label)
                    }
                    harness.apply(.sendData(DataDelivery(payload: payload, receivers: receivers, source: sender)))
                    harness.apply(.releaseData(sender, cost: payload.cost))
                }
            }
        }

        private func take() {
            for (index, client) in harness.clients.enumerated() {
                for case .message(_, let payload) in client.transport.data?.consumeEvents() ?? [] {
                    #expect(payload == part(received[index]))
                    received[index] += 1
                }
            }
        }
    }

    @Test(
        "A file of 20 MB arrives whole at a receiver of 2 MB/s, whose lead the fast one and the sender keep below 1.2 MB"
    )
    func file() throws {
        let parts = 1_334
        let stage = try Stage([Self.settings(), Self.settings(), Self.settings(taking: 2_000_000)], parts: parts)
        var lead = 0
        stage.run(for: .seconds(30)) {
            lead = max(lead, stage.received[1] - stage.received[2])
            return stage.received[2] == parts
        }
        #expect(stage.received == [0, parts, parts])
        #expect(lead * 15_000 > 500_000 && lead * 15_000 < 1_200_000, "\(lead * 15_000) bytes")
        #expect(stage.closed == [])
        #expect(stage.harness.engine.statistics.data.channelsClosedAsSlow == 0)
    }

    @Test(
        "A receiver that takes nothing holds the sender for 10 s; then its channel ends with the reason, and the others get everything"
    )
    func deadReceiver() throws {
        let parts = 200
        let stage = try Stage([Self.settings(), Self.settings(), Self.settings()], parts: parts)
        let dead = stage.harness.clients[2]
        dead.transport.isKilled = true
        let start = stage.harness.now
        stage.run(for: .seconds(9))
        // Half a megabyte waits for it, and 64 kB of the sender.
        #expect((35...42).contains(stage.received[1]), "\(stage.received[1])")
        #expect(stage.closed == [])
        stage.run(for: .seconds(9)) { stage.received[1] == parts }
        #expect(stage.received[1] == parts)
        #expect(stage.closed == [.dataChannelClosed(dead.id, label: Self.label, .receiverTooSlow)])
        #expect(stage.harness.engine.statistics.data.channelsClosedAsSlow == 1)
        #expect(stage.harness.now - start >= .seconds(10))
    }

    @Test("A receiver that is removed holds nobody any more")
    func removedReceiver() throws {
        let parts = 100
        let stage = try Stage([Self.settings(), Self.settings(), Self.settings()], parts: parts)
        let dead = stage.harness.clients[2]
        dead.transport.isKilled = true
        stage.run(for: .seconds(3))
        #expect(stage.received[1] < 45)
        stage.harness.apply(.removePeer(dead.id))
        stage.run(for: .seconds(2)) { stage.received[1] == parts }
        #expect(stage.received[1] == parts)
    }
}
