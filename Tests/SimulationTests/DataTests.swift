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
                for case .message(_, let payload) in client.transport.data?.consumeEvents() ?? [] {
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
        "A file to a viewer whose link is narrow leaves its media whole: audio loses nothing, and video is small for a second more at most and stands no longer than without the file, which gets 60 kbit/s at least",
        arguments: [96, 97, 98, 99] as [UInt64], [false, true])
    func mediaFirst(own: UInt64, hasTwoConnections: Bool) throws {
        let viewer = Viewer(
            downlink: LinkModel(delay: .milliseconds(20)), rate: .kilobitsPerSecond(800),
            hasTwoConnections: hasTwoConnections)
        let alone = try call(viewer, seed: Seeds.seed(own), sendsFile: false)
        let busy = try call(viewer, seed: Seeds.seed(own), sendsFile: true)
        print("seed \(own), two connections \(hasTwoConnections): alone \(alone), beside a file \(busy)")
        #expect(busy.audioLost <= alone.audioLost)
        #expect(busy.frames * 20 >= alone.frames * 19, "one of twenty at most")
        #expect(busy.longestFreeze <= alone.longestFreeze + .milliseconds(200))
        #expect(busy.soundDelayP95 <= .milliseconds(150), "what a conversation does not notice (ITU-T G.114)")
        #expect(busy.secondsSmall <= alone.secondsSmall + 1)
        #expect(busy.fileBytes >= 150_000)
    }

    @Test(
        "A viewer whose machine is busy, so that packets wait for it up to 150 ms at a time although its link has room, is sent a file with 2 Mbit/s at least",
        arguments: [101, 102, 103] as [UInt64])
    func busyReceiver(own: UInt64) throws {
        let found = try call(
            Viewer(downlink: LinkModel(delay: .milliseconds(1), rate: .kilobitsPerSecond(1_000_000)), isBusy: true),
            seed: Seeds.seed(own), sendsFile: true)
        print("seed \(own): \(found)")
        #expect(found.fileBytes >= 5_000_000)
        #expect(found.frames > 500)
    }

    private struct Viewer {
        var downlink: LinkModel
        /// Of the bottleneck ahead of it.
        var rate: Bitrate?
        /// Messages have a connection of their own, as pages have that receive on another.
        var hasTwoConnections = false
        /// Other programs have the processor: what arrives waits, at random moments, and is then read at once.
        var isBusy = false
    }

    /// What a viewer had of the last 20 s; of its audio, what was lost of all.
    private struct Received {
        var audioLost = 0
        var soundDelayP95 = TimeSpan.zero
        var frames = 0
        var longestFreeze = TimeSpan.zero
        /// Seconds in layers below the usual one of so narrow a link.
        var secondsSmall = 0.0
        var fileBytes = 0
    }

    private func call(_ viewer: Viewer, seed: UInt64, sendsFile: Bool) throws -> Received {
        let world = try World(seed: seed)
        let room = world.openRoom()
        let ada = world.join(room)
        let bob = world.join(
            room, ClientSettings(uplink: LinkModel(delay: viewer.downlink.delay), downlink: viewer.downlink))
        var settings = ClientSettings(uplink: LinkModel(delay: viewer.downlink.delay), downlink: viewer.downlink)
        settings.group = bob.id
        let reader = viewer.hasTwoConnections ? world.join(room, settings) : bob
        let bottleneck = viewer.rate.map { SharedBottleneck(rate: $0) }
        for client in [bob, reader] { client.bottleneck = bottleneck }
        let video = bob.subscribe(to: ada.publish(.simulcast()))
        let microphone = ada.publish()
        let audio = bob.subscribe(to: microphone)
        audio.keepsDelays = true
        #expect(world.run(atMost: .seconds(5)) { ada.isConnected && bob.isConnected && reader.isConnected })
        var limits = DataChannelSettings()
        (limits.messagesPerSecond, limits.messagesAtOnce) = (10_000, 10_000)
        for client in [ada, reader] { client.openData(DataChannelTerms(label: Self.label), settings: limits) }
        world.run(for: .seconds(20))

        var found = Received()
        let (frames, delays) = (video.frames.decoded, audio.delays.count)
        video.resetGap(at: world.now)
        var relayed = world.events.count, sent = 0
        let start = world.now, end = world.now + .seconds(20)
        var random = RandomSource(seed: seed)
        var nextStall = world.now
        _ = world.run(atMost: .seconds(20)) {
            if viewer.isBusy, world.now >= nextStall {
                bob.downlink.stall(for: .milliseconds(.random(in: 10...150, using: &random)), at: world.now)
                nextStall = world.now + .milliseconds(.random(in: 50...400, using: &random))
            }
            if sendsFile {
                ada.withData { session in
                    while session.bufferedBytes < 65_536 {
                        _ = session.send(Self.message(sent), on: Self.label, at: world.now)
                        sent += 1
                    }
                }
            }
            for case .dataReceived(let sender, let label, let payload) in world.events[relayed...].map(\.event) {
                let receivers = [DataReceiver(peer: reader.id, label: label)]
                world.apply(.sendData(DataDelivery(payload: payload, receivers: receivers, source: sender)))
                world.apply(.releaseData(sender, cost: payload.cost))
            }
            relayed = world.events.count
            for case .message(_, let payload) in reader.transport.data?.consumeEvents() ?? [] {
                found.fileBytes += payload.bytes.count
            }
            return world.now >= end
        }
        let sorted = audio.delays[delays...].sorted()
        found.soundDelayP95 = sorted.isEmpty ? .zero : sorted[sorted.count * 95 / 100]
        found.frames = video.frames.decoded - frames
        found.longestFreeze = video.longestGap
        let changes = video.frames.layers + [(end, 0)]
        for (one, next) in zip(changes, changes.dropFirst()) where one.layer < 1 && next.time > start {
            found.secondsSmall += (next.time - max(one.time, start)).seconds
        }
        // What is on its way is not lost.
        microphone.isSending = false
        world.run(for: .seconds(1))
        found.audioLost = audio.missing
        return found
    }
}
