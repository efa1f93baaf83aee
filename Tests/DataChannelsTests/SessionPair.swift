import Primitives

@testable import DataChannels

/// Two sessions and the path between them, in virtual time: loss, delay, reordering and duplicates follow from a seed.
final class SessionPair {
    struct Path {
        /// Packets lost, duplicated and delayed by an extra 30 ms, per thousand.
        var loss = 0, duplicates = 0, late = 0
        var delay = TimeSpan.milliseconds(20)
    }

    private struct InFlight {
        var arrival: MonotonicTime
        var bytes: [UInt8]
        var isToServer: Bool
    }

    let client: DataChannelSession, server: DataChannelSession
    var path: Path
    private var random: RandomSource
    private(set) var now = MonotonicTime(milliseconds: 1_000)
    private var packets: [InFlight] = []
    private(set) var clientEvents: [DataChannelSession.Event] = [], serverEvents: [DataChannelSession.Event] = []
    private(set) var packetCount = 0
    /// Drops all packets to the client.
    var isClientDeaf = false

    init(
        seed: UInt64 = 1, path: Path = Path(), settings: DataChannelSettings = .init(),
        clientSettings: DataChannelSettings? = nil, longestRemoteMessage: Int = 262_144, startsBoth: Bool = false
    ) {
        random = RandomSource(seed: seed)
        self.path = path
        client = DataChannelSession(
            settings: clientSettings ?? settings, remotePort: 5_000, longestRemoteMessage: longestRemoteMessage,
            isDTLSClient: true, random: RandomSource(seed: seed &+ 1))
        server = DataChannelSession(
            settings: settings, remotePort: 5_000, longestRemoteMessage: longestRemoteMessage, isDTLSClient: false,
            random: RandomSource(seed: seed &+ 2))
        client.start(at: now)
        if startsBoth { server.start(at: now) }
        run(for: .milliseconds(1_000))
    }

    /// Lets time pass, in steps of a millisecond.
    func run(for time: TimeSpan, until isDone: () -> Bool = { false }) {
        let end = now + time
        while now < end, !isDone() {
            flush()
            now = now + .milliseconds(1)
            let due = packets.filter { $0.arrival <= now }
            packets.removeAll { $0.arrival <= now }
            for packet in due {
                packet.bytes.withUnsafeBytes {
                    _ = packet.isToServer ? server.receive($0, at: now) : client.receive($0, at: now)
                }
            }
            if client.nextDeadline <= now { client.advance(to: now) }
            if server.nextDeadline <= now { server.advance(to: now) }
            clientEvents += client.consumeEvents()
            serverEvents += server.consumeEvents()
        }
    }

    private func flush() {
        send(from: client, toServer: true)
        send(from: server, toServer: false)
    }

    private func send(from session: DataChannelSession, toServer: Bool) {
        var buffer = [UInt8](repeating: 0, count: 1_200)
        while true {
            let length = buffer.withUnsafeMutableBytes { session.write(into: $0, at: now, allowsData: true) }
            guard length > 0 else { return }
            packetCount += 1
            if isClientDeaf, !toServer { continue }
            if chance(path.loss) { continue }
            for _ in 0..<(chance(path.duplicates) ? 2 : 1) {
                let extra = chance(path.late) ? TimeSpan.milliseconds(30) : .zero
                packets.append(
                    InFlight(
                        arrival: now + path.delay + extra, bytes: Array(buffer[..<length]), isToServer: toServer))
            }
        }
    }

    private func chance(_ perThousand: Int) -> Bool {
        perThousand > 0 && Int(random.next() % 1_000) < perThousand
    }

    /// The messages that the server received, in order.
    var received: [DataPayload] {
        serverEvents.compactMap { if case .message(_, let payload) = $0 { payload } else { nil } }
    }

    /// The messages that the client received, in order.
    var receivedByClient: [DataPayload] {
        clientEvents.compactMap { if case .message(_, let payload) = $0 { payload } else { nil } }
    }

    func forgetEvents() { (clientEvents, serverEvents) = ([], []) }
}

/// A payload of `length` bytes that depends on `number`.
func payload(_ number: Int, length: Int) -> DataPayload {
    var random = RandomSource(seed: UInt64(number))
    var bytes = [UInt8](repeating: 0, count: length)
    for index in bytes.indices {
        bytes[index] = index < 8 ? UInt8(number >> (8 * index) & 0xff) : UInt8(random.next() & 0xff)
    }
    return DataPayload(isText: false, bytes: bytes)
}
