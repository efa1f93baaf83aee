internal import DTLS
internal import ICE
internal import MediaControl
public import Primitives
internal import RTP
internal import SRTP

extension ClientTransport {
    /// Sends checks that are due and lets DTLS retransmit.
    public func advance(to now: MonotonicTime, into output: inout OutboundBatch) {
        guard !isKilled else { return }
        if now >= nextCheck, !hasEnded { check(at: now, into: &output) }
        if let dtls, now >= dtls.nextDeadline {
            dtls.advance(to: now, to: destination, into: &output)
            noteHandshake(at: now)
        }
        advanceData(to: now, into: &output)
    }

    private func check(at now: MonotonicTime, into output: inout OutboundBatch) {
        nextCheck =
            isChecking
            ? now + behaviour.firstInterval
            : (behaviour.keepsChecking ? now + behaviour.interval : .distantFuture)
        let nominate = behaviour.nominationDelay == nil ? behaviour.nominatesAlways || isChecking : !isChecking
        let id = context.stun.sendCheck(
            to: destination, local: local, remote: server, controlling: true, nominate: nominate,
            priority: 110 << 24 | 65_535 << 8 | 255, into: &output)
        guard let id else { return }
        if checks.count == 16 { checks.removeFirst() }
        checks.append((id, server))
    }

    /// Takes a datagram from the server.
    public func receive(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime,
        into output: inout OutboundBatch
    ) -> ClientReceived {
        guard !isKilled, datagram.count >= 2 else { return .dropped(.truncated) }
        let bytes = UnsafeRawBufferPointer(datagram)
        switch DatagramKind(firstByte: datagram[0]) {
        case .stun: return receiveSTUN(bytes, source, now, &output)
        case .dtls:
            guard let dtls = dtls ?? makeAssociation() else { return .dropped(.dtlsUnexpected) }
            dtls.start(at: now, to: destination, into: &output)
            let reason = dtls.receive(bytes, at: now, to: destination, into: &output)
            noteHandshake(at: now)
            receiveData(at: now, into: &output)
            return reason.map { .dropped($0) } ?? .nothing
        case .media: return open(datagram)
        case .unknown: return .dropped(.unknownProtocol)
        }
    }

    private func receiveSTUN(
        _ bytes: UnsafeRawBufferPointer, _ source: SocketAddress, _ now: MonotonicTime, _ output: inout OutboundBatch
    ) -> ClientReceived {
        guard STUNPeek.isSTUN(bytes.bytes) else { return .dropped(.stunMalformed) }
        if let ufrag = STUNPeek.localUfrag(of: bytes.bytes) {
            guard bytes[ufrag].elementsEqual(local.ufrag) else { return .dropped(.stunUnknownUfrag) }
            guard behaviour.answersChecks, !isMute else { return .nothing }
            let outcome = context.stun.answer(bytes, local: local, from: source, isControlling: true, into: &output)
            if case .dropped(let reason) = outcome { return .dropped(reason) }
            serverChecks += 1
            return .nothing
        }
        let id = TransactionID(of: bytes)
        guard let open = checks.first(where: { $0.id == id }) else { return .dropped(.stunUnexpected) }
        guard context.stun.isAuthenticResponse(bytes, remote: open.credential) else {
            return .dropped(.stunUnauthorized)
        }
        checks.removeAll { $0.id == id }
        answers += 1
        if isChecking {
            isChecking = false
            nextCheck = behaviour.keepsChecking ? now + behaviour.interval : .distantFuture
            if let delay = behaviour.nominationDelay { nextCheck = now + delay }
            if answers == 1 { makeAssociation()?.start(at: now, to: destination, into: &output) }
        }
        return .nothing
    }

    /// Decrypts RTP or RTCP in place.
    func open(_ datagram: UnsafeMutableRawBufferPointer) -> ClientReceived {
        guard let srtp else { return .dropped(.srtpNotReady) }
        let isRTCP = RTCPType.contains(datagram[1])
        switch isRTCP ? srtp.unprotectRTCP(datagram) : srtp.unprotectRTP(datagram) {
        case .dropped(let reason): return .dropped(reason)
        case .clear(let length): return isRTCP ? .rtcp(length: length) : .rtp(length: length)
        }
    }

    private func makeAssociation() -> DTLSAssociation? {
        if let dtls { return dtls }
        dtls = DTLSAssociation(
            context: context.dtls, role: behaviour.role == .client ? .client : .server,
            fingerprintSHA256: serverFingerprint, handshakeTimeout: .seconds(30))
        return dtls
    }

    private func noteHandshake(at now: MonotonicTime) {
        guard let dtls else { return }
        switch dtls.state {
        case .idle, .handshaking: return
        case .connected(let keys):
            guard srtp == nil, let profile = SRTPProfile(rawValue: keys.profile) else { return }
            srtp = SRTPSession(profile: profile, sendingKey: keys.local, receivingKey: keys.remote)
            startData(at: now)
        case .ended: hasEnded = true
        }
    }
}
