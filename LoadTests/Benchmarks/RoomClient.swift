import Cryptography
import Foundation
import MediaControl
import NetworkIO
import Primitives
import Simulation

/// One peer with its own socket.
final class RoomClient {
    let number: UInt64
    let isPublisher: Bool
    let description: PeerDescription
    var nextFrame = MonotonicTime.zero
    var nextAudio = MonotonicTime.zero
    private let transport: ClientTransport
    private let server: SocketAddress
    private var socket: UDPSocket
    /// Its connection if it has no UDP.
    private let stream: FramedSocket?
    private var batch = OutboundBatch(datagrams: 16, bytes: 32_768)
    private var video: PacketSource
    private var audio: PacketSource
    private var framesSent = 0

    init(
        _ number: UInt64, _ context: ClientContext, _ certificate: Certificate, server: SocketAddress,
        isPublisher: Bool,
        overTCP: Bool = false
    ) throws {
        self.number = number
        self.isPublisher = isPublisher
        self.server = server
        let client = EngineClient(
            PeerID(number), in: Descriptions.room, context: context, certificate: certificate, server: server)
        (description, transport) = (client.description, client.transport)
        var configuration = UDPSocketConfiguration(address: SocketAddress(ipv4: 0x7f00_0001, port: 0), port: 0)
        configuration.receiveBufferBytes = isPublisher ? 1 << 20 : 16 << 10
        configuration.joinsReceived = false
        configuration.segmentsSent = false
        socket = try UDPSocket(configuration)
        stream = overTCP ? FramedSocket(port: server.port) : nil
        video = PacketSource(ssrc: UInt32(number * 2) << 8)
        audio = PacketSource(ssrc: UInt32(number * 2 + 1) << 8)
    }

    /// Completes ICE and DTLS.
    func connect() throws {
        let start = MonotonicClock.now()
        while !transport.isConnected {
            let now = MonotonicClock.now()
            precondition(now - start < .seconds(10), "client \(number) did not connect")
            if transport.nextDeadline <= now { transport.advance(to: now, into: &batch) }
            drain()
            usleep(200)
        }
    }

    /// Receives and answers what has arrived.
    func drain() {
        if let stream {
            guard !transport.isConnected else { return stream.discard() }
            var answers = OutboundBatch(datagrams: 16, bytes: 32_768)
            stream.drain { _ = transport.receive($0, from: server, at: MonotonicClock.now(), into: &answers) }
            stream.send(answers)
        }
        while let run = socket.receive() {
            for index in 0..<run.count {
                _ = transport.receive(run[index], from: server, at: MonotonicClock.now(), into: &batch)
            }
        }
        flush()
    }

    func sendFrame(_ sizes: [Int]) {
        for packet in video.frame(keyframe: framesSent % 300 == 0, sizes: sizes) { send(packet) }
        framesSent += 1
        flush()
    }

    func sendAudio(_ size: Int, level: UInt8) {
        send(audio.audioPacket(size: size, level: level))
        flush()
    }

    private func send(_ packet: [UInt8]) {
        guard let slot = batch.reserve(packet.count + 32) else { return }
        slot.copyBytes(from: packet)
        guard let length = transport.protectRTP(slot, length: packet.count) else { return }
        batch.commit(length: length, to: server)
    }

    private func flush() {
        guard batch.count > 0 else { return }
        if let stream { stream.send(batch) } else { socket.send(batch) }
        batch.removeAll()
    }
}

/// Processor time of another thread of this process.
enum ThreadTime {
    /// The time of the thread with this name, as the scheduler counts it.
    static func nanoseconds(of name: String) -> Int64 {
        let folder = "/proc/self/task"
        for thread in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
            guard let comm = try? String(contentsOfFile: "\(folder)/\(thread)/comm", encoding: .utf8),
                comm.trimmingCharacters(in: .whitespacesAndNewlines) == name,
                let schedule = try? String(contentsOfFile: "\(folder)/\(thread)/schedstat", encoding: .utf8)
            else { continue }
            return schedule.split(separator: " ").first.flatMap { Int64($0) } ?? 0
        }
        return 0
    }
}
