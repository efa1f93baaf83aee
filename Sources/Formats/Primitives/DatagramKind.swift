/// What a datagram on a peer's transport is, by its first byte.
///
/// RFC 7983 section 7:
/// ```text
///          +----------------+
///          |        [0..3] -+--> forward to STUN
/// packet-->|      [20..63] -+--> forward to DTLS
///          |    [128..191] -+--> forward to RTP/RTCP
///          +----------------+
/// ```
@frozen public enum DatagramKind: Sendable {
    case stun
    case dtls
    /// RTP or RTCP.
    case media
    /// Nothing that a peer sends here.
    case unknown

    /// The kind that a first byte says. Inlinable, because it is asked for each packet.
    @inlinable public init(firstByte: UInt8) {
        switch firstByte {
        case 128...191: self = .media
        case 0...3: self = .stun
        case 20...63: self = .dtls
        default: self = .unknown
        }
    }
}
