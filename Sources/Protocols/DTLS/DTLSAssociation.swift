internal import COpenSSL
public import Primitives

/// One DTLS 1.2 association (RFC 6347) over datagrams, for the keys of SRTP (RFC 5764).
///
/// Sans-IO: OpenSSL reads from and writes to memory, and its retransmission timer runs by the caller's time.
public final class DTLSAssociation {
    /// The state of the association.
    public enum State: Sendable, Hashable {
        case idle
        case handshaking
        case connected(DTLSKeys)
        case ended(DTLSEnd)
    }

    /// Which side sends the ClientHello.
    public enum Role: Sendable, Hashable { case client, server }

    /// RFC 6347 section 4.2.4.1 recommends 1 s; real-time peers use less (RFC 9147 section 5.8.2), because a lost flight is a delay that users
    /// notice.
    static let initialRetransmission = TimeSpan.milliseconds(250)
    /// Doubling stops here: OpenSSL gives up after 12 retransmissions, and 11 of these take 30 s.
    static let maximumRetransmission = TimeSpan.seconds(4)

    /// The current state.
    public internal(set) var state = State.idle
    let role: Role
    let fingerprint: [UInt8]
    let context: DTLSContext
    let pipe: DatagramPipe
    /// OpenSSL's object; nil once `records` has taken over.
    private(set) var ssl: OpaquePointer?
    /// What remains of a completed handshake; nil before it, and under ciphers that stay with OpenSSL.
    private var records: EstablishedRecords?
    private let handshakeTimeout: TimeSpan
    private var handshakeDeadline = MonotonicTime.distantFuture
    var retransmitAt = MonotonicTime.distantFuture
    var backoff = DTLSAssociation.initialRetransmission
    var timerStartsSeen = 0
    var sawOtherCertificate = false
    var lastFlight = Flight()
    /// The first part of a ClientHello has arrived.
    var sawBeginning = false

    /// An association with the peer whose certificate has this SHA-256 fingerprint; nil when OpenSSL has no memory.
    public init?(context: DTLSContext, role: Role, fingerprintSHA256: [UInt8], handshakeTimeout: TimeSpan) {
        let pipe = DatagramPipe(mtu: context.mtu)
        guard let ssl = Self.makeSSL(context, pipe, role) else { return nil }
        self.context = context
        self.role = role
        self.pipe = pipe
        self.ssl = ssl
        self.handshakeTimeout = handshakeTimeout
        fingerprint = fingerprintSHA256
        SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { SSL_free(ssl) }

    /// When to call `advance` next.
    public var nextDeadline: MonotonicTime {
        guard case .handshaking = state else { return .distantFuture }
        return min(handshakeDeadline, retransmitAt)
    }

    /// Starts the handshake timers; a client sends its ClientHello.
    public func start(at now: MonotonicTime, to destination: SocketAddress, into output: inout OutboundBatch) {
        guard case .idle = state else { return }
        state = .handshaking
        handshakeDeadline = now + handshakeTimeout
        if role == .client { _ = handshake(at: now, to: destination, into: &output) }
    }

    /// Processes one datagram of DTLS records; nil when it was accepted.
    public func receive(
        _ datagram: UnsafeRawBufferPointer, at now: MonotonicTime, to destination: SocketAddress,
        into output: inout OutboundBatch
    ) -> DropReason? {
        // Record header: type, version 0xfeXX, epoch, sequence number, length (RFC 6347 section 4.1).
        guard datagram.count >= 13, datagram[1] == 0xfe else { return .dtlsMalformed }
        pipe.inbound = datagram
        defer { pipe.inbound = nil }
        switch state {
        case .handshaking:
            noteBeginning(datagram)
            return handshake(at: now, to: destination, into: &output)
        case .connected:
            switch records?.read(datagram, context.cipher, into: &context.applicationData) {
            case nil: withRecordBuffers { readRecords(at: now, to: destination, into: &output) }
            case .end: state = .ended(.closedByPeer)
            case .finished: repeatLastFlight(to: destination, into: &output)
            case .nothing: break
            }
        case .idle, .ended: return .dtlsUnexpected
        }
        return nil
    }

    /// Retransmits a flight that was not answered in time, and aborts a handshake that takes too long.
    public func advance(to now: MonotonicTime, to destination: SocketAddress, into output: inout OutboundBatch) {
        guard now >= nextDeadline, case .handshaking = state else { return }
        guard now < handshakeDeadline else {
            state = .ended(.timedOut)
            return
        }
        backoff = min(backoff * 2, Self.maximumRetransmission)
        retransmitAt = now + backoff
        if copenssl_timer_is_lent() == 1, pipe.isTimerArmed, let timer = pipe.timer { copenssl_expire_timer(timer) }
        ERR_clear_error()
        let status = SSL_ctrl(ssl, DTLS_CTRL_HANDLE_TIMEOUT, 0, nil)
        if status < 0 { state = .ended(.handshakeFailed(Self.lastFailure())) }
        flush(at: now, to: destination, into: &output)
        noteTimer(at: now)
    }

    /// Sends close_notify.
    public func close(to destination: SocketAddress, into output: inout OutboundBatch) {
        if case .connected = state {
            if records != nil {
                if let room = output.reserve(EstablishedRecords.overhead + 2),
                    let length = records?.closeNotify(into: room, context.cipher)
                {
                    output.commit(length: length, to: destination)
                }
            } else {
                ERR_clear_error()
                withRecordBuffers { _ = SSL_shutdown(ssl) }
                write(to: destination, into: &output)
            }
        }
        if case .ended = state { return }
        state = .ended(.closed)
    }

    /// Bytes that a record may have in addition to the packet in it, under any cipher: AES-CBC with its vector, digest and padding has the most.
    public static let recordOverhead = 96

    /// Sends a packet as one record of application data; false when there is no association, or no room for `recordOverhead` bytes more.
    public func send(
        _ packet: UnsafeRawBufferPointer, to destination: SocketAddress, into output: inout OutboundBatch
    ) -> Bool {
        guard case .connected = state, let room = output.reserve(packet.count + Self.recordOverhead) else {
            return false
        }
        if records != nil {
            guard let length = records?.seal(packet, into: room, context.cipher) else { return false }
            output.commit(length: length, to: destination)
            return true
        }
        ERR_clear_error()
        var status: Int32 = 0
        withRecordBuffers { status = SSL_write(ssl, packet.baseAddress, Int32(packet.count)) }
        writeData(to: destination, into: &output)
        return status > 0
    }

    /// Discards everything that the peer sent; false when OpenSSL has no memory.
    func startOver() -> Bool {
        pipe.reset()
        sawBeginning = false
        guard let fresh = Self.makeSSL(context, pipe, role) else { return false }
        SSL_set_ex_data(fresh, 0, Unmanaged.passUnretained(self).toOpaque())
        SSL_free(ssl)
        ssl = fresh
        return true
    }

    /// The handshake is complete, and OpenSSL's object is freed, if `EstablishedRecords` supports the cipher.
    func settle() {
        guard case .connected = state, !context.keepsLibrary,
            let records = EstablishedRecords(ssl, isClient: role == .client)
        else { return }
        self.records = records
        pipe.reset()
        SSL_free(ssl)
        ssl = nil
    }

    private static func makeSSL(_ context: DTLSContext, _ pipe: DatagramPipe, _ role: Role) -> OpaquePointer? {
        guard let ssl = SSL_new(context.context) else { return nil }
        guard let bio = context.method.bio(over: pipe) else {
            SSL_free(ssl)
            return nil
        }
        SSL_set_bio(ssl, bio, bio)
        SSL_ctrl(ssl, SSL_CTRL_SET_MTU, context.mtu, nil)
        DTLS_set_timer_cb(ssl) { _, previous in previous == 0 ? 250_000 : min(previous * 2, 4_000_000) }
        if role == .client { SSL_set_connect_state(ssl) } else { SSL_set_accept_state(ssl) }
        return ssl
    }
}
