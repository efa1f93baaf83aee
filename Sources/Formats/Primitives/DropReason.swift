/// Why a packet was not used. Every dropped packet is counted under exactly one of these.
public enum DropReason: UInt8, CaseIterable, Sendable {
    // Before a peer is known.
    case unknownSource, unknownProtocol, truncated, oversize, receivedLate
    // STUN and ICE.
    case stunMalformed, stunUnknownUfrag, stunUnauthorized, stunUnexpected, stunReplayed, stunThrottled
    // DTLS.
    case dtlsUnvalidatedTuple, dtlsMalformed, dtlsUnexpected
    // SCTP: no data section was accepted; not a packet of the association.
    case dataUnexpected, dataMalformed
    // SRTP.
    case srtpUnvalidatedTuple, srtpNotReady, srtpAuthentication, srtpReplayed, srtpError
    // RTP and RTCP.
    case rtpMalformed, rtpUnknownStream, rtpUnknownPayloadType, rtpDuplicate, rtpTooOld, rtpPaddingOnly
    case rtxMalformed, rtxUnknownStream, payloadMalformed
    case rtcpMalformed, rtcpUnexpected
    // Policy and bounds.
    case trackMuted, tooManyStreams, retransmissionTooOld, retransmissionThrottled
    // Egress.
    case outboundFull, sendFailed, protectFailed, withoutConsent
    // ICE-TCP: video that is not sent until a slow reader has caught up, a slow reader's full backlog, a connection that has ended.
    case videoHeld, backlogFull, connectionEnded
}

/// One plain counter per reason. A worker owns one set; copies of it go to the metrics page.
public struct DropCounters: Sendable {
    private var counts = [UInt64](repeating: 0, count: DropReason.allCases.count)

    public init() {}

    /// Counts one drop.
    @inlinable public mutating func count(_ reason: DropReason) { self[reason] &+= 1 }

    /// The number of drops for `reason`.
    public subscript(reason: DropReason) -> UInt64 {
        get { counts[Int(reason.rawValue)] }
        set { counts[Int(reason.rawValue)] = newValue }
    }

    /// All drops together.
    public var total: UInt64 { counts.reduce(0, &+) }
}
