import DataChannels
import Primitives

/// Two sessions that open a channel and exchange messages, while the input drops, repeats, damages and replaces their packets. Checksums are left out, as
/// every association allows, so that damage reaches the parsers. Queues stay bounded, whatever arrives.
enum DataChannelsTarget {
    @Sendable static func run(_ bytes: UnsafeRawBufferPointer) {
        var input = FuzzInput(bytes)
        // Twelve turns bring the association up; the handshake is disturbed, too, where fewer are left in peace.
        let turnsInPeace = Int(input.byte() % 13)
        let ends = [false, true].map { isClient in
            DataChannelSession(
                settings: DataChannelSettings(), remotePort: DataChannelSettings.port, longestRemoteMessage: 65_536,
                isDTLSClient: isClient, random: RandomSource(seed: isClient ? 1 : 2))
        }
        var now = MonotonicTime(milliseconds: 1_000)
        for end in ends { end.start(at: now) }
        _ = ends[1].open(DataChannelTerms(label: "a"), at: now)
        _ = ends[0].open(DataChannelTerms(label: "b", isOrdered: false, reliability: .retransmissions(1)), at: now)
        var buffer = [UInt8](repeating: 0, count: DataChannelSession.largestPacket)
        for turn in 0..<400 {
            let isDisturbed = turn > turnsInPeace && !input.isEmpty
            for (index, end) in ends.enumerated() {
                end.advance(to: now)
                if turn % 8 == 0 {
                    let payload = DataPayload(isText: turn % 16 == 0, bytes: Array(repeating: 7, count: turn * 50))
                    _ = end.send(payload, on: turn % 3 == 0 ? "a" : "b", at: now)
                }
                for _ in 0..<8 {
                    let length = buffer.withUnsafeMutableBytes { end.write(into: $0, at: now, allowsData: true) }
                    guard length > 0 else { break }
                    let packet = Array(buffer[..<length])
                    for copy in isDisturbed ? disturbed(packet, &input) : [packet] {
                        _ = copy.withUnsafeBytes { ends[1 - index].receive($0, at: now) }
                    }
                }
                _ = end.consumeEvents()
                precondition(end.bufferedBytes < 4 << 20, "a queue grows without bound")
            }
            now = now + .milliseconds(input.isEmpty ? 50 : 10)
            if turn > 12, input.isEmpty, turn > 100 { break }
        }
    }

    /// What arrives of a packet.
    private static func disturbed(_ packet: [UInt8], _ input: inout FuzzInput) -> [[UInt8]] {
        var changed = packet
        switch input.byte() % 8 {
        case 0: return []
        case 1: return [packet, packet]
        case 2, 3:
            let record = input.record()
            changed = Array(packet[..<12]) + record
        case 4, 5:
            for _ in 0..<4 {
                let position = 12 + Int(input.byte()) % max(1, packet.count - 12)
                if position < changed.count { changed[position] = input.byte() }
            }
        default: return [packet]
        }
        for index in 8..<12 { changed[index] = 0 }
        return [changed]
    }

    /// Chunks of each kind in the place of real ones, and damage.
    @Sendable static func seeds() -> [[UInt8]] {
        let chunks: [[UInt8]] = [
            [0, 3, 0, 17, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 53, 1], [3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 16, 0, 0, 0, 0, 0],
            [192, 0, 0, 12, 0, 0, 0, 9, 0, 1, 0, 2],
            [130, 0, 0, 22, 0, 13, 0, 18, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1],
            [6, 0, 0, 4], [7, 0, 0, 8, 0, 0, 0, 1], [4, 0, 0, 8, 0, 1, 0, 4],
            [1, 0, 0, 20, 0, 0, 0, 5, 0, 0, 255, 255, 0, 9, 0, 9, 0, 0, 0, 1],
        ]
        return [12, 0].flatMap { turnsInPeace in
            chunks.map {
                [turnsInPeace, 6, 2] + FuzzInput.record($0) + [1, 0, 4, 9, 200, 3, 1] + Array(repeating: 6, count: 20)
            }
        }
    }
}
