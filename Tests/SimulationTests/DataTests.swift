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

    @Test(
        "A file to a viewer whose link is narrow waits for its media: sound loses nothing, and video keeps its layer and stands no longer than without the file, which arrives all the same",
        arguments: [96, 97, 98] as [UInt64])
    func mediaFirst(own: UInt64) throws {
        let alone = try narrowCall(seed: Seeds.seed(own), sendsFile: false)
        let busy = try narrowCall(seed: Seeds.seed(own), sendsFile: true)
        print("seed \(own): alone \(alone), beside a file \(busy)")
        #expect(busy.soundLost <= alone.soundLost, "those on their way")
        #expect(busy.pictures * 20 >= alone.pictures * 19, "one of twenty at most")
        #expect(busy.longestFreeze <= alone.longestFreeze + .milliseconds(200))
        #expect(busy.soundDelayP95 <= alone.soundDelayP95 + .milliseconds(60))
        #expect(busy.layer == alone.layer)
        #expect(busy.fileBytes >= 100_000, "40 kbit/s at least")
    }

    /// What a viewer behind 800 kbit/s had of the last 20 s; of its sound, what was lost of all.
    private struct NarrowCall {
        var soundLost = 0
        var soundDelayP95 = TimeInterval.zero
        var pictures = 0
        var longestFreeze = TimeInterval.zero
        var layer: Int?
        var fileBytes = 0
    }

    private func narrowCall(seed: UInt64, sendsFile: Bool) throws -> NarrowCall {
        let world = try World(seed: seed)
        let room = world.openRoom()
        let ada = world.join(room)
        let bob = world.join(
            room,
            ClientSettings(
                uplink: LinkModel(delay: .milliseconds(20)),
                downlink: LinkModel(delay: .milliseconds(20), rate: .kilobitsPerSecond(800))))
        let video = bob.subscribe(to: ada.publish(.simulcast()))
        let sound = bob.subscribe(to: ada.publish())
        sound.keepsDelays = true
        #expect(world.run(atMost: .seconds(5)) { ada.isConnected && bob.isConnected })
        var settings = DataChannelSettings()
        (settings.messagesPerSecond, settings.messagesAtOnce) = (10_000, 10_000)
        for client in [ada, bob] { client.openData(DataChannelTerms(label: Self.label), settings: settings) }
        world.run(for: .seconds(20))

        var found = NarrowCall()
        let (pictures, delays) = (video.frames.decoded, sound.delays.count)
        video.resetGap(at: world.now)
        var relayed = world.events.count, sent = 0
        let end = world.now + .seconds(20)
        _ = world.run(atMost: .seconds(20)) {
            if sendsFile {
                ada.withData { session in
                    while session.bufferedBytes < 65_536 {
                        _ = session.send(Self.message(sent), on: Self.label, at: world.now)
                        sent += 1
                    }
                }
            }
            for case .dataReceived(let sender, let label, let payload) in world.events[relayed...].map(\.event) {
                let receivers = [DataReceiver(peer: bob.id, label: label)]
                world.apply(.sendData(DataDelivery(payload: payload, receivers: receivers, source: sender)))
                world.apply(.releaseData(sender, cost: payload.cost))
            }
            relayed = world.events.count
            for case .message(_, let payload) in bob.transport.data?.takeEvents() ?? [] {
                found.fileBytes += payload.bytes.count
            }
            return world.now >= end
        }
        let sorted = sound.delays[delays...].sorted()
        found.soundDelayP95 = sorted.isEmpty ? .zero : sorted[sorted.count * 95 / 100]
        found.pictures = video.frames.decoded - pictures
        found.longestFreeze = video.longestGap
        found.layer = video.frames.layers.last?.layer
        // The queue is as before; one or two packets are on their way at any moment.
        world.run(for: .seconds(1))
        found.soundLost = sound.missing
        return found
    }
}
