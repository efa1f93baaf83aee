import DataChannels
import MediaControl
import Primitives
import Simulation
import Testing

@Suite("Messages over bad links")
struct DataTests {
    private static let label = "reliable"

    /// One message: its number, and bytes that follow from it.
    private static func message(_ number: Int) -> DataPayload {
        let byte = UInt8(truncatingIfNeeded: number &* 37)
        return DataPayload(
            isText: false, bytes: [UInt8(truncatingIfNeeded: number), byte] + [UInt8](repeating: byte, count: 1_998))
    }

    @Test(
        "Over loss, jitter, reordering and duplicates on every link, reliable messages arrive once and in order at all others, beside a video without a fault",
        arguments: [91, 92, 93, 94, 95] as [UInt64])
    func reliable(own: UInt64) throws {
        let world = try World(seed: Seeds.seed(own))
        let room = world.openRoom()
        var link = LinkModel(delay: .milliseconds(25), loss: 0.02)
        link.jitter = .milliseconds(10)
        (link.keepsOrder, link.reorder, link.duplicates) = (false, 0.02, 0.01)
        var settings = DataChannelSettings()
        (settings.messagesPerSecond, settings.messagesAtOnce) = (10_000, 10_000)
        let clients = (0..<3).map { _ in world.join(room, ClientSettings(link: link)) }
        let view = clients[1].subscribe(to: clients[0].publish(.simulcast()))
        #expect(world.run(atMost: .seconds(5)) { clients.allSatisfy(\.isConnected) })
        for client in clients { client.openData(DataChannelTerms(label: Self.label), settings: settings) }
        let isOpen = world.run(atMost: .seconds(5)) {
            world.times { if case .dataChannelOpened = $0 { true } else { false } }.count == clients.count
        }
        #expect(isOpen)

        let count = 200
        var sent = 0, relayed = world.events.count
        var received = clients.map { _ in [DataPayload]() }
        let isComplete = world.run(atMost: .seconds(60)) {
            clients[0].withData { session in
                while sent < count, session.bufferedBytes < 65_536 {
                    _ = session.send(Self.message(sent), on: Self.label, at: world.now)
                    sent += 1
                }
            }
            // The control plane: everybody else gets it.
            for case .dataReceived(let sender, let label, let payload) in world.events[relayed...].map(\.event) {
                let receivers = clients.filter { $0.id != sender }.map { DataReceiver(peer: $0.id, label: label) }
                world.apply(.sendData(DataDelivery(payload: payload, receivers: receivers, source: sender)))
                world.apply(.releaseData(sender, cost: payload.cost))
            }
            relayed = world.events.count
            for (index, client) in clients.enumerated() {
                for case .message(_, let payload) in client.transport.data?.takeEvents() ?? [] {
                    received[index].append(payload)
                }
            }
            return received[1].count >= count && received[2].count >= count
        }
        world.run(for: .seconds(2))
        #expect(isComplete)
        let wanted = (0..<count).map(Self.message)
        #expect(received[1] == wanted && received[2] == wanted && received[0].isEmpty)
        #expect(clients[0].uplink.lost > 0 && clients[1].downlink.lost > 0, "the links did lose packets")
        #expect(view.frames.decoded > 30)
        #expect(world.faults == [])
    }
}
