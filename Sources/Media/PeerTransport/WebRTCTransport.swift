internal import DTLS
internal import DataChannels
internal import ICE
public import MediaControl
public import Primitives
internal import SRTP

/// The transport of one peer: RFC 7983 demultiplexing over ICE-lite, DTLS and SRTP.
///
/// Sans-IO, not Sendable: its worker's engine calls it. Nothing is allocated for a media packet.
public final class WebRTCTransport {
    /// Bytes that a slot needs after a packet for `protectRTP` and `protectRTCP` (GCM tag of 16, SRTCP index of 4,
    /// rounded up).
    public static let protectionOverhead = 32

    /// The peer's id.
    public let id: PeerID
    let context: TransportContext
    var ice: ICELiteAgent
    var dtls: DTLSAssociation?
    var srtp: SRTPSession? {
        didSet {
            media.pointee.sender = srtp?.sender
            media.pointee.receiver = srtp?.receiver
            media.pointee.session = srtp.map { Unmanaged.passUnretained($0) }
        }
    }
    /// For the packet path; valid for the transport's lifetime.
    public let media: UnsafeMutablePointer<MediaPath>
    /// Its data channels; nil for a peer whose description has no accepted data section.
    var data: DataChannelSession?
    var remote: RemoteTransport?
    /// The validated address from which DTLS, and later media, last arrived; used until ICE has selected an address.
    var provisional: SocketAddress?
    /// DTLS datagrams received before the peer's description; empty once that is known.
    var earlyFlight: [[UInt8]] = []
    var isOver = false
    var events: [TransportEvent] = []

    /// The set-up limit counts from `now`, or from `setRemote` when the description has no remote side yet.
    public init(description: PeerDescription, context: TransportContext, at now: MonotonicTime) {
        id = description.id
        media = .allocate(capacity: 1)
        media.initialize(to: MediaPath())
        self.context = context
        let local = description.localICE
        ice = ICELiteAgent(
            local: ICECredential(ufrag: local.ufrag, password: local.password), settings: context.iceSettings)
        if let remote = description.remote { adopt(remote, at: now) }
    }

    deinit { media.deallocate() }

    /// The peer's address; nil before it has nominated an address and no handshake has begun. What may be sent there is determined by
    /// `MediaPath.destination` and `destination(ofReport:)`.
    ///
    /// RFC 8445 section 12.1.2 lets a lite agent send once a pair is nominated. libwebrtc nominates with its second check, by which time
    /// keys may have existed for 50 ms and more (measured), and packets sent until then, including the first keyframe, would be lost. A remote that has
    /// completed the handshake from a validated address is the peer, and the answer to the server's check arrives before the keys are ready.
    public var remoteAddress: SocketAddress? { ice.selected ?? provisional ?? ice.nominee }
    /// Whether media may be sent: there are keys, and the peer's address has answered the server's checks.
    public var mayReceive: Bool { media.pointee.hasConsent }
    /// ICE and DTLS are up; `protectRTP` works.
    public var isConnected: Bool { srtp != nil }
    /// The name of the SRTP profile in use; empty before the handshake is complete.
    public var srtpProfileName: String { srtp?.profile.name ?? "" }
    /// As measured by the server's own consent checks; nil before the first answer.
    public var roundTripTime: TimeSpan? { ice.roundTripTime }
    /// Whether datagrams from `address` belong to this peer.
    public func isValidated(_ address: SocketAddress) -> Bool { ice.isValidated(address) }

    /// Whether the peer's media comes from `address` and has paused, so that it may come from another port now.
    public func mayBeRemapped(from address: SocketAddress, at now: MonotonicTime) -> Bool {
        guard isConnected, ice.selected == address else { return false }
        noteSignOfLife()
        return ice.isSilent(at: now)
    }

    /// When to call `advance`.
    public var nextDeadline: MonotonicTime {
        if isOver { return .distantFuture }
        noteSignOfLife()
        // Without an address the handshake cannot write anything, and a due deadline would stay due; a new address is an event of its own.
        guard let dtls, remoteAddress != nil else { return ice.nextDeadline }
        let deadline = min(ice.nextDeadline, dtls.nextDeadline)
        // Without the peer's consent nothing can be written, and a due deadline would stay due.
        guard let data, media.pointee.destination != nil else { return deadline }
        return min(deadline, data.nextDeadline)
    }

    /// Whether `pollEvent` returns an event, or `nextDeadline` is earlier than before: cheap, for a check after each datagram.
    public var wantsAttention: Bool { !events.isEmpty || hasNearerDeadline }
    var hasNearerDeadline = false

    /// Removes and returns the oldest event.
    public func pollEvent() -> TransportEvent? {
        hasNearerDeadline = false
        return events.isEmpty ? nil : events.removeFirst()
    }

    // MARK: Media out

    /// Encrypts the RTP packet of `length` bytes in `slot` in place; returns the new length, or nil when there are no keys or
    /// libsrtp2 refuses. The slot needs `protectionOverhead` bytes of room.
    public func protectRTP(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int? {
        srtp?.protectRTP(slot, length: length)
    }

    /// Encrypts the RTCP compound of `length` bytes in `slot` in place; as `protectRTP`.
    public func protectRTCP(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int? {
        srtp?.protectRTCP(slot, length: length)
    }

    /// Removes the sending state of an SSRC whose subscription has ended. The SSRC must not be used again on this
    /// transport: its packet counter would restart under the same key.
    public func releaseSendingStream(ssrc: UInt32) { srtp?.releaseSendingStream(ssrc: ssrc) }

    /// Marks an SSRC as no longer received, which makes room for another (streams per peer are bounded).
    public func releaseReceivingStream(ssrc: UInt32) { srtp?.releaseReceivingStream(ssrc: ssrc) }

    /// Reverts `releaseReceivingStream`: the SSRC is received again.
    public func retainReceivingStream(ssrc: UInt32) { srtp?.retainReceivingStream(ssrc: ssrc) }

    // MARK: Control

    /// Applies the peer's description, initially or after an ICE restart.
    public func setRemote(_ remote: RemoteTransport, at now: MonotonicTime, into output: inout OutboundBatch) {
        guard !isOver else { return }
        adopt(remote, at: now)
        advanceICE(to: now, into: &output)
        processEarlyFlight(at: now, into: &output)
    }

    /// Another peer has answered the server's check from `address`: it no longer belongs to this one.
    public func release(_ address: SocketAddress) {
        guard !isOver else { return }
        noteSignOfLife()
        ice.release(address)
        if provisional == address { provisional = nil }
        updatePath()
    }

    /// Where a report of `length` bytes may be sent now; nil if it may not.
    ///
    /// An address that does not answer the server's checks gets reports within the limit of what arrives from it: a send-only
    /// client works, and amplification stays at three times at most.
    public func destination(ofReport length: Int) -> SocketAddress? {
        guard let address = media.pointee.address else { return nil }
        if media.pointee.hasConsent { return address }
        noteSignOfLife()
        return ice.maySend(length + Self.protectionOverhead, to: address) ? address : nil
    }

    /// New local credentials; the old ones stay valid until a check with the new ones has been answered.
    public func restartICE(local: ICECredentials, at now: MonotonicTime) {
        ice.restart(local: ICECredential(ufrag: local.ufrag, password: local.password))
    }

    /// Sends close_notify and ends with `.removed`.
    public func close(at now: MonotonicTime, into output: inout OutboundBatch) {
        guard !isOver else { return }
        if let dtls, let destination = remoteAddress {
            bound(to: destination, &output) { dtls.close(to: destination, into: &$0) }
        }
        end(.removed)
    }

    /// Reports packets received on the media path to ICE.
    func noteSignOfLife() {
        guard let source = media.pointee.address, media.pointee.lastReceived > .zero else { return }
        ice.noteAuthenticPacket(from: source, at: media.pointee.lastReceived)
        if !media.pointee.hasConsent { ice.noteReceived(media.pointee.received, from: source) }
        media.pointee.lastReceived = .zero
        media.pointee.received = 0
    }

    /// Runs timers that are due at `now`.
    public func advance(to now: MonotonicTime, into output: inout OutboundBatch) {
        guard !isOver else { return }
        noteSignOfLife()
        advanceICE(to: now, into: &output)
        advanceData(to: now)
        guard !isOver, let dtls, now >= dtls.nextDeadline, let destination = remoteAddress else { return }
        bound(to: destination, &output) { dtls.advance(to: now, to: destination, into: &$0) }
        noteHandshake(at: now)
    }
}
