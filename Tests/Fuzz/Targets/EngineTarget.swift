import Cryptography
import Foundation
import Primitives

/// The whole receive path: a room with a publisher of every codec, a subscriber to all of it, a publish-only member. Datagrams from
/// them and from unknown sources, clear RTP and RTCP behind SRTP, commands, time. Everything that goes to the subscriber is RTP that it
/// asked for, and when they have gone nothing of them is left.
enum EngineTarget {
    static func start() throws -> (UnsafeRawBufferPointer) -> Void {
        let room = try FuzzRoom()
        return { run($0, in: room) }
    }

    static func run(_ bytes: UnsafeRawBufferPointer, in room: FuzzRoom) {
        room.open()
        var input = FuzzInput(bytes)
        var script = EngineScript(room: room)
        while !input.isEmpty { script.step(&input) }
        room.close()
    }
}

/// What the steps of an input do to the room.
struct EngineScript {
    let room: FuzzRoom
    private var sequences: [Int: UInt16] = [:]
    private var timestamps: [Int: UInt32] = [:]

    init(room: FuzzRoom) { self.room = room }

    mutating func step(_ input: inout FuzzInput) {
        let kind = input.byte()
        switch kind & 7 {
        case 0, 1, 2: publish(&input)
        case 3: room.receiveRTCP(Array(input.record()), of: kind & 8 == 0 ? .publisher : .subscriber)
        case 4: room.receive(Array(input.record()), from: FuzzRoom.Member.allCases[Int(kind >> 3) % 3])
        case 5: room.receiveFromUnknownSource(Array(input.record()), UInt16(kind))
        case 6: room.pass(.milliseconds(Int64(input.byte()) * (kind & 8 == 0 ? 1 : 50)))
        default: room.command(kind >> 3, input.byte())
        }
    }

    /// A packet of one of the streams: its header follows from counters, extension block and payload are the input's.
    private mutating func publish(_ input: inout FuzzInput) {
        let choice = input.byte()
        let stream = FuzzRoom.Stream.allCases[Int(choice & 7) % FuzzRoom.Stream.allCases.count]
        let layer = Int(choice >> 3 & 3) % 3
        let change = Int8(bitPattern: input.byte())
        let flags = input.byte()
        let block = Array(input.record())
        let payload = Array(input.record())
        let key = Int(choice & 0x3f)
        let sequence = (sequences[key] ?? 65_520) &+ UInt16(bitPattern: Int16(change))
        let timestamp = (timestamps[key] ?? 0xffff_f000) &+ (flags & 1 != 0 ? 3_000 : 0)
        sequences[key] = sequence
        timestamps[key] = timestamp
        let type = stream.payloadType(isRetransmission: choice & 0x20 != 0, isRedundant: choice & 0x40 != 0)
        let ssrc = stream.ssrc(layer: layer, isRetransmission: choice & 0x20 != 0)
        var packet: [UInt8] = [
            0x80 | (block.isEmpty ? 0 : 0x10) | (flags & 2 != 0 ? 0x20 : 0), type | (flags & 1 != 0 ? 0x80 : 0),
        ]
        packet += Self.bytes(UInt32(sequence), 2) + Self.bytes(timestamp, 4) + Self.bytes(ssrc, 4)
        if !block.isEmpty {
            let padded = block + [UInt8](repeating: 0, count: (4 - block.count % 4) % 4)
            packet += flags & 4 != 0 ? [0x10, 0x00] : [0xbe, 0xde]
            packet += Self.bytes(UInt32(padded.count / 4), 2) + padded
        }
        packet += payload
        if flags & 8 != 0 {
            room.receiveProtected(packet, of: .publisher)
        } else {
            room.receiveRTP(packet, of: .publisher)
        }
    }

    private static func bytes(_ value: UInt32, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt32(8 * (count - 1 - $0))) }
    }
}
