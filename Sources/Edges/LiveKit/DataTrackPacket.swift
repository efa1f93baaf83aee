import Primitives
import Rooms

/// A packet of a data track in version 0 of LiveKit's layout: its number is in bytes 2 and 3, in network byte order; everything else is between publisher and
/// subscribers.
enum DataTrackPacket {
    /// Version and flags, a reserved byte, numbers of track, packet and frame, and a timestamp.
    private static let headerBytes = 12

    /// nil: too short, or of another version.
    static func decode(_ payload: DataPayload) -> RoomMessage? {
        let bytes = payload.bytes
        guard !payload.isText, bytes.count >= headerBytes, bytes[0] >> 5 == 0 else { return nil }
        var message = RoomMessage(topic: "", content: .foreign(DataProtocol.liveKit.name, bytes), isReliable: false)
        message.dataTrack = UInt16(bytes[2]) << 8 | UInt16(bytes[3])
        return message
    }

    /// The packet with the room's number of its track.
    static func encode(_ message: RoomMessage, _ number: UInt16) -> DataPayload? {
        guard case .foreign(DataProtocol.liveKit.name, var bytes) = message.content, bytes.count >= headerBytes else {
            return nil
        }
        bytes[2] = UInt8(number >> 8)
        bytes[3] = UInt8(truncatingIfNeeded: number)
        return DataPayload(isText: false, bytes: bytes)
    }
}
