public import MediaControl
public import Primitives

/// What became of one datagram.
public enum Received: Sendable, Hashable {
    /// Used up inside: STUN or DTLS.
    case nothing
    case dropped(DropReason)
    /// A clear RTP packet lies in the first `length` bytes of the datagram.
    case rtp(length: Int)
    /// A clear RTCP compound lies in the first `length` bytes of the datagram.
    case rtcp(length: Int)
}

/// What a transport tells its engine, in order.
public enum TransportEvent: Sendable, Hashable {
    /// A check from this address was answered: datagrams from it are this peer's from now on.
    case addressValidated(SocketAddress)
    /// The address is no longer this peer's.
    case addressReleased(SocketAddress)
    /// ICE and DTLS are up and keys are installed.
    case connected
    /// The selected address changed after `connected` (NAT rebinding, network switch).
    case moved(SocketAddress)
    /// Checks with the new local credentials have arrived: the old user name fragment is no longer this peer's (B21).
    case ufragReleased(String)
    /// Nothing more will come; the engine forgets the peer with its addresses and ufrags. Told once.
    case ended(PeerEndReason)
}

/// One remote: RFC 7983 demultiplexing over ICE-lite, DTLS and SRTP.
public final class PeerTransport {
    /// Bytes a slot needs behind a packet for `protectRTP` and `protectRTCP` (GCM tag of 16, SRTCP index of 4, rounded up).
    public static let protectionOverhead = 32

    /// Who this is.
    public let id: PeerID
    private let context: TransportContext

    /// The set-up limit counts from `now`.
    public init(description: PeerDescription, context: TransportContext, at now: MonotonicTime) {
        self.id = description.id
        self.context = context
    }

    /// The address that datagrams are sent to; nil before ICE has selected one.
    public var remoteAddress: SocketAddress? { nil }
    /// ICE and DTLS are up; `protectRTP` works.
    public var isConnected: Bool { false }
    /// The name of the SRTP profile in use; empty before.
    public var srtpProfileName: String { "" }
    /// As measured by the server's own consent checks; nil before the first answer.
    public var roundTripTime: TimeInterval? { nil }
    /// When `advance` wants to be called.
    public var nextDeadline: MonotonicTime { .distantFuture }
    /// Whether `pollEvent` has something: cheap, for a look after each datagram.
    public var hasEvents: Bool { false }

    /// The oldest event not yet taken.
    public func pollEvent() -> TransportEvent? { nil }

    /// Takes a datagram; RTP and RTCP are decrypted in place.
    public func receive(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime,
        into output: inout OutboundBatch
    ) -> Received { .nothing }

    /// Encrypts the RTP packet of `length` bytes in `slot` in place; the new length, or nil when there are no keys or libsrtp2
    /// refuses. The slot needs `protectionOverhead` bytes of room.
    public func protectRTP(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int? { nil }

    /// Encrypts the RTCP compound of `length` bytes in `slot` in place; as `protectRTP`.
    public func protectRTCP(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int? { nil }

    /// Forgets the sending state of an SSRC whose subscription is gone. The SSRC must not be used again on this transport: its
    /// packet counter would start over under the same key.
    public func releaseSendingStream(ssrc: UInt32) {}

    /// Forgets the receiving state of an SSRC, which makes room for another (streams per peer are bounded).
    public func releaseReceivingStream(ssrc: UInt32) {}

    /// Fires timers that are due at `now`.
    public func advance(to now: MonotonicTime, into output: inout OutboundBatch) {}

    /// The peer's description, first or after an ICE restart.
    public func setRemote(_ remote: RemoteTransport, at now: MonotonicTime, into output: inout OutboundBatch) {}

    /// New local credentials; the old ones stay valid until a check with the new ones has been answered (B21).
    public func restartICE(local: ICECredentials, at now: MonotonicTime) {}

    /// Sends close_notify and ends with `.removed`.
    public func close(at now: MonotonicTime, into output: inout OutboundBatch) {}
}
