import Primitives

/// The content of INIT and INIT ACK (RFC 9260 sections 3.3.2 and 3.3.3).
struct Initiation: Equatable {
    private enum Parameter {
        static let stateCookie: UInt16 = 7
        /// RFC 9653 section 4; its value names the method that replaces the checksum: 1 is DTLS.
        static let zeroChecksum: UInt16 = 0x8001
        /// RFC 5061 section 4.2.7: the list of chunk types.
        static let extensions: UInt16 = 0x8008
        /// RFC 3758 section 3.1.
        static let forwardTSN: UInt16 = 0xc000
    }

    /// A cookie of ours has 16 bytes, one of usrsctp some 400; together with the other parameters it must fit one packet.
    private static let longestCookie = 1_024

    var tag: UInt32
    /// The receive window of the sender, in bytes.
    var window: UInt32
    /// Streams that the sender will use, and that it accepts.
    var outgoing: UInt16, incoming: UInt16
    var firstTSN: UInt32
    var hasForwardTSN = true, hasReset = true, acceptsNoChecksum = true
    var cookie: [UInt8] = []

    init(tag: UInt32, window: UInt32, streams: UInt16, firstTSN: UInt32) {
        self.tag = tag
        self.window = window
        outgoing = streams
        incoming = streams
        self.firstTSN = firstTSN
    }

    /// nil when it violates RFC 9260 section 3.3.2: a tag of zero, or no streams.
    init?(_ value: UnsafeRawBufferPointer) {
        guard value.count >= 16 else { return nil }
        let span = value.bytes
        tag = span.readUInt32(0)
        window = span.readUInt32(4)
        outgoing = span.readUInt16(8)
        incoming = span.readUInt16(10)
        firstTSN = span.readUInt32(12)
        guard tag != 0, outgoing != 0, incoming != 0 else { return nil }
        (hasForwardTSN, hasReset, acceptsNoChecksum) = (false, false, false)
        var parameters = ParameterReader(UnsafeRawBufferPointer(rebasing: value[16...]))
        while let (type, value) = parameters.next() {
            switch type {
            case Parameter.stateCookie:
                guard value.count <= Self.longestCookie else { return nil }
                cookie = Array(value)
            case Parameter.zeroChecksum: acceptsNoChecksum = value.count >= 4 && value.bytes.readUInt32(0) == 1
            case Parameter.extensions:
                hasReset = value.contains(ChunkType.reconfiguration.rawValue)
                hasForwardTSN = hasForwardTSN || value.contains(ChunkType.forwardTSN.rawValue)
            case Parameter.forwardTSN: hasForwardTSN = true
            default: break
            }
        }
    }

    /// The value of the chunk.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(number: tag)
        bytes.append(number: window)
        bytes.append(number: outgoing)
        bytes.append(number: incoming)
        bytes.append(number: firstTSN)
        bytes.append(parameter: Parameter.forwardTSN, [])
        bytes.append(
            parameter: Parameter.extensions, [ChunkType.reconfiguration.rawValue, ChunkType.forwardTSN.rawValue])
        bytes.append(parameter: Parameter.zeroChecksum, [0, 0, 0, 1])
        if !cookie.isEmpty { bytes.append(parameter: Parameter.stateCookie, cookie) }
        return bytes
    }
}
