internal import COpenSSL
internal import Primitives

extension DTLSAssociation {
    /// Lets OpenSSL continue the handshake as far as the current datagram allows; the reason why the datagram was rejected, or nil.
    func handshake(
        at now: MonotonicTime, to destination: SocketAddress, into output: inout OutboundBatch
    ) -> DropReason? {
        ERR_clear_error()
        let status = SSL_do_handshake(ssl)
        if status == 1 {
            finishHandshake()
        } else {
            let error = SSL_get_error(ssl, status)
            if error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE {
                if wasNoHello, startOver() { return .dtlsMalformed }
                fail()
            }
        }
        flush(at: now, to: destination, into: &output)
        noteTimer(at: now)
        // Records after the last flight in the same datagram are read at once.
        if case .connected = state {
            withRecordBuffers { readRecords(at: now, to: destination, into: &output) }
            settle()
        }
        return nil
    }

    /// A ClientHello that starts again is sent by the peer's timer: the previous one was incomplete, because a part was lost or was forged with
    /// another length, after which OpenSSL silently ignores the peer's parts.
    func noteBeginning(_ datagram: UnsafeRawBufferPointer) {
        // After the record header: ClientHello (1), length, message number, and offset 0 of the fragment (RFC 6347 section 4.2.2).
        guard role == .server, lastFlight.isEmpty, datagram.count >= 25, datagram[0] == 22, datagram[13] == 1,
            datagram[19] | datagram[20] | datagram[21] == 0
        else { return }
        if sawBeginning, !startOver() { return }
        sawBeginning = true
        pipe.inbound = datagram
    }

    /// Whether the failed datagram was no ClientHello at all. Before the server has answered, records are neither encrypted nor authenticated: an attacker who
    /// forges the peer's address could end its handshake with one. A ClientHello that was parsed, but has no version or cipher in common, is answered with an
    /// alert (RFC 5246 section 7.2.2).
    private var wasNoHello: Bool {
        guard role == .server, lastFlight.isEmpty else { return false }
        // After the record header of 13 bytes: level, description.
        guard let end = pipe.ends.last, end >= 15, pipe.outbound[end - 15] == 21 else { return true }
        switch Int32(pipe.outbound[end - 1]) {
        case SSL_AD_HANDSHAKE_FAILURE, SSL_AD_PROTOCOL_VERSION, SSL_AD_INSUFFICIENT_SECURITY, SSL_AD_INTERNAL_ERROR:
            return false
        default: return true
        }
    }

    /// A connected association sends only one more record, at its end, but OpenSSL keeps 33 kB of record buffers for that: SSL_MODE_RELEASE_BUFFERS
    /// does not apply to DTLS. So the buffers exist only while it sends. (Few associations use this path: see `EstablishedRecords`.)
    func withRecordBuffers(_ body: () -> Void) {
        SSL_alloc_buffers(ssl)
        body()
        // Refused while a record is half read; the next call frees them then.
        SSL_free_buffers(ssl)
    }

    private func fail() {
        state = .ended(sawOtherCertificate ? .fingerprintMismatch : .handshakeFailed(Self.lastFailure()))
    }

    private func finishHandshake() {
        let profile = SSL_get_selected_srtp_profile(ssl)?.pointee.id ?? 0
        guard let lengths = DTLSKeys.lengths(of: UInt16(truncatingIfNeeded: profile)) else {
            return state = .ended(.handshakeFailed(.noCommonSRTPProfile))
        }
        // The certificate was compared when it came; OpenSSL cannot have skipped it, because a peer without one is
        // refused.
        var material = [UInt8](repeating: 0, count: 2 * (lengths.key + lengths.salt))
        let label = "EXTRACTOR-dtls_srtp"
        guard SSL_export_keying_material(ssl, &material, material.count, label, label.utf8.count, nil, 0, 0) == 1 else {
            return state = .ended(.handshakeFailed(.other))
        }
        state = .connected(
            DTLSKeys(
                profile: UInt16(truncatingIfNeeded: profile), material: material, key: lengths.key, salt: lengths.salt,
                isClient: role == .client))
    }

    /// Application data, alerts, and the peer's last flight again when this side's was lost.
    func readRecords(at now: MonotonicTime, to destination: SocketAddress, into output: inout OutboundBatch) {
        while true {
            ERR_clear_error()
            // The rest of a record that does not fit a packet would come with the next read as if it were another packet: such a record is no SCTP packet
            // anyway.
            guard let room = context.applicationData.reserve(ApplicationData.longestPacket) else { break }
            let length = SSL_read(ssl, room.baseAddress, Int32(room.count))
            if length > 0 {
                context.applicationData.commit(Int(length))
                continue
            }
            switch SSL_get_error(ssl, length) {
            case SSL_ERROR_ZERO_RETURN: state = .ended(.closedByPeer)
            case SSL_ERROR_SSL: state = .ended(.closedByPeer)
            default: break
            }
            break
        }
        flush(at: now, to: destination, into: &output)
    }

    /// Translates OpenSSL's timer into the caller's time.
    func noteTimer(at now: MonotonicTime) {
        guard pipe.isTimerArmed else {
            retransmitAt = .distantFuture
            backoff = Self.initialRetransmission
            return
        }
        guard pipe.timerStarts != timerStartsSeen else { return }
        timerStartsSeen = pipe.timerStarts
        retransmitAt = now + backoff
    }

    /// OpenSSL asks whether the peer's certificate is valid: it is if it is the one that the SDP announced (RFC 5763 section 5). Its signer and its
    /// expiry do not matter here.
    static func verifyPeer(_ store: OpaquePointer?) -> Int32 {
        guard let store, let certificate = X509_STORE_CTX_get0_cert(store),
            let ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
            let owner = SSL_get_ex_data(OpaquePointer(ssl), 0)
        else { return 0 }
        let association = Unmanaged<DTLSAssociation>.fromOpaque(owner).takeUnretainedValue()
        var digest = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 0
        guard X509_digest(certificate, EVP_sha256(), &digest, &length) == 1, digest == association.fingerprint else {
            association.sawOtherCertificate = true
            X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)
            return 0
        }
        return 1
    }

    /// What OpenSSL's last error means.
    static func lastFailure() -> HandshakeFailure {
        defer { ERR_clear_error() }
        return failure(ERR_GET_REASON(ERR_peek_last_error()))
    }

    /// What one of OpenSSL's reasons means.
    static func failure(_ reason: Int32) -> HandshakeFailure {
        switch reason {
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_UNKNOWN_PROTOCOL, SSL_R_VERSION_TOO_LOW, SSL_R_VERSION_TOO_HIGH,
            SSL_R_WRONG_VERSION_NUMBER, SSL_R_WRONG_SSL_VERSION, SSL_R_UNSUPPORTED_SSL_VERSION:
            return .noCommonVersion
        case SSL_R_NO_SHARED_CIPHER: return .noCommonCipher
        // OpenSSL adds the number of the peer's alert, a byte, to this value. Reasons that all of OpenSSL's libraries share have flags, which make them larger.
        case SSL_AD_REASON_OFFSET...(SSL_AD_REASON_OFFSET + 255): return .refusedByPeer
        default: return .other
        }
    }
}
