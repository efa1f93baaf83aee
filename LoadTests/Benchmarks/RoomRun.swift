import Cryptography
import Foundation
import Logging
import Measuring
import MediaControl
import MediaEngine
import MediaWorkers
import NetworkIO
import Primitives
import Simulation

/// A worker with real sockets under load, in one process: the key figure without a load generator, for profiling.
///
/// Nobody reads the receivers' sockets: the kernel then drops packets at the last step, which costs the sender as much as delivery
/// (measured, +-5 %). The real load test (`make loadtest`) has receivers that check every byte.
struct RoomRun {
    var publishers = 1
    var subscribers = 100
    /// Everybody publishes and receives everybody else.
    var isMeeting = false
    var videoKilobits = 1_000
    var hasAudio = true
    var audioBytes = 80
    /// How many microphones are forwarded; nil: all.
    var loudest: Int?
    var seconds = 10
    /// Subscribers have no UDP.
    var overTCP = false
    var profiles = "SRTP_AEAD_AES_128_GCM"

    init(arguments: [String]) {
        var rest = arguments[...]
        while let name = rest.popFirst() {
            switch name {
            case "--meeting": isMeeting = true
            case "--tcp": overTCP = true
            case "--silent": hasAudio = false
            case "--cm": profiles = "SRTP_AES128_CM_SHA1_80"
            case "--loudest": loudest = Int(rest.popFirst() ?? "")
            case "--publishers": publishers = Int(rest.popFirst() ?? "") ?? publishers
            case "--subscribers": subscribers = Int(rest.popFirst() ?? "") ?? subscribers
            case "--video": videoKilobits = Int(rest.popFirst() ?? "") ?? videoKilobits
            case "--seconds": seconds = Int(rest.popFirst() ?? "") ?? seconds
            default: print("bench room: '\(name)' is not understood")
            }
        }
        if isMeeting { subscribers = publishers }
    }

    func run() async throws {
        guard let reference = ReferencePacket() else { return print("no reference packet here") }
        let certificate = try Certificate.selfSigned()
        var configuration = MediaWorkerConfiguration()
        configuration.workers = 1
        configuration.udpBasePort = 0
        configuration.bindAddress = SocketAddress(ipv4: 0x7f00_0001, port: 0)
        configuration.engine.consentTimeout = .seconds(30)
        let logger = Logger("bench", output: LogOutput(level: .error, format: .text))
        let pool = try MediaWorkerPool(configuration: configuration, certificate: certificate, logger: logger)
        let worker = pool.workers[0]
        let context = try ClientContext(certificate: try Certificate.selfSigned(), profiles: profiles)
        let server = SocketAddress(ipv4: 0x7f00_0001, port: worker.port)
        var audio = RoomAudio()
        audio.maximumMicrophones = loudest
        await worker.apply([.addRoom(Descriptions.room), .setRoomAudio(Descriptions.room, audio)])
        var clients: [RoomClient] = []
        let count = isMeeting ? publishers : publishers + subscribers
        for number in 1...UInt64(count) {
            let client = try RoomClient(
                number, context, certificate, server: server, isPublisher: number <= publishers,
                overTCP: overTCP && number > publishers)
            await worker.apply([.addPeer(client.description)])
            try client.connect()
            clients.append(client)
        }
        for publisher in 1...UInt64(publishers) { await worker.apply(tracks(of: publisher, clients: clients)) }
        let sources = clients.prefix(publishers).map { $0 }
        // Their connections would fill.
        let readers = overTCP ? Array(clients.dropFirst(publishers)) : []
        send(from: sources, to: readers, seconds: 1, reference: nil)
        let before = await worker.statistics(), start = ThreadTime.nanoseconds(of: "media-0")
        send(from: sources, to: readers, seconds: seconds, reference: reference)
        let after = await worker.statistics(), end = ThreadTime.nanoseconds(of: "media-0")
        report(before, after, nanoseconds: Double(end - start), unit: reference.nanoseconds)
        await pool.stop()
    }

    private func tracks(of publisher: UInt64, clients: [RoomClient]) -> [MediaCommand] {
        var commands: [MediaCommand] = []
        let kinds: [MediaKind] = (videoKilobits > 0 ? [.video] : []) + (hasAudio ? [.audio] : [])
        for kind in kinds {
            let track = publisher * 2 + (kind == .video ? 0 : 1)
            commands.append(.addTrack(Descriptions.track(track, kind: kind, of: publisher)))
            for client in clients where client.number != publisher && (isMeeting || !client.isPublisher) {
                let id = track * 10_000 + client.number
                commands.append(
                    .subscribe(Descriptions.subscription(id, to: track, kind: kind, by: client.number)))
            }
        }
        return commands
    }

    /// Sends in real time; publishers' frames are spread over the frame interval.
    private func send(
        from publishers: [RoomClient], to readers: [RoomClient], seconds: Int, reference: ReferencePacket?
    ) {
        let bytesAFrame = videoKilobits * 1_000 / 8 / 30
        let packets = max(1, (bytesAFrame + 1_099) / 1_100)
        let start = MonotonicClock.now()
        var turn: Int64 = 0
        var nextSample = start
        while true {
            let now = MonotonicClock.now()
            guard now - start < .seconds(Int64(seconds)) else { return }
            for (index, publisher) in publishers.enumerated() {
                let phase = TimeSpan.nanoseconds(33_333_333 * Int64(index) / Int64(publishers.count))
                if videoKilobits > 0, now >= publisher.nextFrame + phase {
                    if publisher.nextFrame == .zero { publisher.nextFrame = now }
                    publisher.nextFrame = publisher.nextFrame + .nanoseconds(33_333_333)
                    let sizes = (0..<packets).map { bytesAFrame / packets + ($0 < bytesAFrame % packets ? 1 : 0) }
                    publisher.sendFrame(sizes)
                }
                if hasAudio, now >= publisher.nextAudio + phase {
                    if publisher.nextAudio == .zero { publisher.nextAudio = now + .milliseconds(7) }
                    publisher.nextAudio = publisher.nextAudio + .milliseconds(20)
                    publisher.sendAudio(audioBytes, level: level(of: index, at: now - start))
                }
                if turn % 500 == 0 { publisher.drain() }
            }
            if let reference, now >= nextSample {
                reference.sample()
                nextSample = now + .milliseconds(100)
            }
            if turn % 10 == 0 { for reader in readers { reader.drain() } }
            turn += 1
            usleep(300)
        }
    }

    /// All microphones are open: two people speak at a time, others after two seconds, and the rest is background noise.
    private func level(of publisher: Int, at time: TimeSpan) -> UInt8 {
        let turn = Int(time.seconds / 2) * 7 % publishers
        return publisher == turn || publisher == (turn + 1) % publishers ? 30 : 70 + UInt8(publisher % 10)
    }

    private func report(
        _ before: WorkerStatistics, _ after: WorkerStatistics, nanoseconds: Double, unit: Double
    ) {
        let packets = Double(after.packetsForwarded - before.packetsForwarded)
        let each = nanoseconds / max(1, packets)
        print(
            String(
                format:
                    "%@: %.0f packets, %.3f us each = %.3f reference packets (%.0f ns); busy %.1f %%; segmented %.1f %%, %.2f calls a packet, %.1f turns/s",
                isMeeting ? "meeting of \(publishers)" : "\(publishers) -> \(subscribers)", packets, each / 1_000,
                each / unit, unit, nanoseconds / Double(seconds) / 1e7,
                100 * Double(after.packetsSegmented - before.packetsSegmented) / max(1, packets),
                Double(after.socketCalls - before.socketCalls) / max(1, packets),
                Double(after.turns - before.turns) / Double(seconds)))
        let drops = DropReason.allCases.filter { after.drops[$0] > before.drops[$0] }
        if !drops.isEmpty { print("drops:", drops.map { "\($0) \(after.drops[$0] - before.drops[$0])" }) }
    }
}
