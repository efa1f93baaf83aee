public import MediaControl
public import Primitives

/// Copies of a peer's packets in clear text, during a capture. The memory is allocated when the capture begins; a packet that finds no room is counted.
public final class PacketTap {
    /// Bytes between two reports: a peer with 20 Mbit/s fills half of it in 200 ms.
    private static let capacity = 1 << 20

    private let keepsPayload: Bool
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 8)
    private var used = 0
    private var dropped: UInt64 = 0

    /// A tap without packets.
    public init(_ settings: CaptureSettings) { keepsPayload = settings.keepsPayload }

    deinit { memory.deallocate() }

    /// Copies a packet, or its beginning.
    public func note(_ packet: UnsafeRawBufferPointer, isSent: Bool, isRTCP: Bool, at now: MonotonicTime) {
        let kept = isRTCP || keepsPayload ? packet.count : Self.headerLength(of: packet)
        guard packet.count <= Int(UInt16.max), used + CapturedPackets.recordLength + kept <= memory.count else {
            dropped += 1
            return
        }
        memory.storeBytes(of: now.nanoseconds, toByteOffset: used, as: Int64.self)
        memory.storeBytes(of: UInt16(packet.count), toByteOffset: used + 8, as: UInt16.self)
        memory.storeBytes(of: UInt16(kept), toByteOffset: used + 10, as: UInt16.self)
        memory[used + 12] = isSent ? 1 : 0
        memory[used + 13] = isRTCP ? 1 : 0
        used += CapturedPackets.recordLength
        memory[used..<used + kept].copyBytes(from: packet[..<kept])
        used += kept
    }

    /// The packets copied since the last call.
    public func drain(of peer: PeerID) -> CapturedPackets {
        defer { (used, dropped) = (0, 0) }
        return CapturedPackets(peer: peer, records: Array(memory[..<used]), dropped: dropped)
    }

    /// Bytes of an RTP header with its contributing sources and its extension (RFC 3550 sections 5.1 and 5.3.1), within the packet.
    private static func headerLength(of packet: UnsafeRawBufferPointer) -> Int {
        guard packet.count >= 12 else { return packet.count }
        var length = 12 + 4 * Int(packet[0] & 0x0f)
        if packet[0] & 0x10 != 0, packet.count >= length + 4 {
            length += 4 + 4 * (Int(packet[length + 2]) << 8 | Int(packet[length + 3]))
        }
        return min(length, packet.count)
    }
}
