import PayloadFormats
import Primitives

/// Redundant audio (RFC 2198) as it is forwarded.
enum REDPayload {
    /// Writes `payload` for a subscriber and returns the number of bytes: as RED with the block types of its session, or only the primary block if it has
    /// no RED. A payload that is not valid RED is copied unchanged; one that is encrypted end to end is not passed here.
    static func write(_ payload: UnsafeRawBufferPointer, mapping: FormatMapping, into output: UnsafeMutableRawPointer)
        -> Int
    {
        guard let primary = RED.Blocks(payload.bytes)?.primaryOffset else {
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

    /// Gives every block the subscriber's payload type; only for a payload whose headers were checked.
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
