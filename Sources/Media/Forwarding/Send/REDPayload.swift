import Primitives

/// Redundant audio (RFC 2198) as it is handed on.
///
/// ```text
///  0                   1                    2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3  4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |1|   block PT  |  timestamp offset         |   block length    |   redundant block
/// |0|   block PT  |                                                  primary block, last
/// ```
enum REDPayload {
    /// Blocks looked at: Chromium sends at most 3, RFC 8854 style senders at most 9.
    static let maximumBlocks = 10

    /// Writes `payload` for a subscriber: as RED with the block types of its own session, or only the primary block where it has
    /// no RED. A payload that is not valid RED is copied as it is; one that is encrypted end to end is not brought here. The number of bytes written.
    static func write(_ payload: UnsafeRawBufferPointer, mapping: FormatMapping, into output: UnsafeMutableRawPointer)
        -> Int
    {
        guard let primary = primaryBlock(of: payload) else {
            if payload.count > 0 { output.copyMemory(from: payload.baseAddress!, byteCount: payload.count) }
            return payload.count
        }
        if mapping.stripsRED {
            let length = payload.count - primary
            if length > 0 { output.copyMemory(from: payload.baseAddress! + primary, byteCount: length) }
            return length
        }
        output.copyMemory(from: payload.baseAddress!, byteCount: payload.count)
        if mapping.redBlockPayloadType != FormatMapping.unmapped { relabel(output, to: mapping.redBlockPayloadType) }
        return payload.count
    }

    /// Where the primary block's data begins; nil when the headers do not fit the payload.
    static func primaryBlock(of payload: UnsafeRawBufferPointer) -> Int? {
        var cursor = 0
        var redundant = 0
        for _ in 0..<maximumBlocks {
            guard cursor < payload.count else { return nil }
            if payload[cursor] & 0x80 == 0 {
                let start = cursor + 1 + redundant
                return start <= payload.count ? start : nil
            }
            guard cursor + 4 <= payload.count else { return nil }
            redundant += Int(payload[cursor + 2] & 0x03) << 8 | Int(payload[cursor + 3])
            cursor += 4
        }
        return nil
    }

    /// Gives every block the subscriber's payload type; only on a payload whose headers were checked.
    private static func relabel(_ bytes: UnsafeMutableRawPointer, to payloadType: UInt8) {
        var cursor = 0
        while true {
            let byte = bytes.load(fromByteOffset: cursor, as: UInt8.self)
            bytes.storeBytes(of: byte & 0x80 | payloadType, toByteOffset: cursor, as: UInt8.self)
            if byte & 0x80 == 0 { return }
            cursor += 4
        }
    }
}
