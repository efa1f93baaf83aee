public import Primitives

extension ICELiteAgent {
    /// Takes a datagram that has the shape of a STUN message; nil when it was used.
    public mutating func receive(
        _ datagram: UnsafeRawBufferPointer, from source: SocketAddress, at now: MonotonicTime, stun: STUNAgent,
        into output: inout OutboundBatch
    ) -> DropReason? {
        guard !isOver else { return .stunUnexpected }
        guard STUNPeek.isSTUN(datagram.bytes) else { return .stunMalformed }
        switch datagram.bytes.readUInt16(0) {
        case 0x0001: return receiveCheck(datagram, source, now, stun, &output)
        case 0x0101: return receiveResponse(datagram, source, now, stun)
        // An error may be a 487 or 400 to the server's own check; it proves nothing and changes nothing.
        case 0x0111: return openChecks.contains(TransactionID(of: datagram)) ? nil : .stunUnexpected
        // A Binding indication keeps a NAT open (RFC 8445 section 11). It carries no proof.
        case 0x0011: return isValidated(source) ? nil : .stunUnexpected
        default: return .stunUnexpected
        }
    }

    private mutating func receiveCheck(
        _ datagram: UnsafeRawBufferPointer, _ source: SocketAddress, _ now: MonotonicTime, _ stun: STUNAgent,
        _ output: inout OutboundBatch
    ) -> DropReason? {
        guard let ufrag = STUNPeek.localUfrag(of: datagram.bytes) else { return .stunMalformed }
        let isCurrent = local.matches(datagram, ufrag)
        let credential: ICECredential
        if isCurrent {
            credential = local
        } else if let previousLocal, previousLocal.matches(datagram, ufrag) {
            credential = previousLocal
        } else {
            return .stunUnknownUfrag
        }
        switch stun.answer(datagram, local: credential, from: source, into: &output) {
        case .dropped(let reason): return reason
        case .refused: return nil
        case .answered(let nominates):
            if isCurrent { adoptCredentials() }
            noteCheck(from: source, nominates: nominates, at: now)
            return nil
        }
    }

    /// A check with the newest credentials came: the restart is through (B21).
    private mutating func adoptCredentials() {
        if let old = previousLocal {
            previousLocal = nil
            tell(.credentialsReplaced(oldUfrag: old.ufrag))
        }
        previousRemote = nil
    }

    private mutating func receiveResponse(
        _ datagram: UnsafeRawBufferPointer, _ source: SocketAddress, _ now: MonotonicTime, _ stun: STUNAgent
    ) -> DropReason? {
        // RFC 8445 section 7.2.5.2.1: an answer must come from where the check went.
        guard let open = openChecks.match(TransactionID(of: datagram), from: source) else { return .stunUnexpected }
        guard stun.isAuthenticResponse(datagram, remote: open.credential) else { return .stunUnauthorized }
        openChecks.remove(open.id)
        roundTripTime = now - open.sentAt
        noteSignOfLife(from: source, at: now)
        return nil
    }

    /// An authentic SRTP or SRTCP packet came from `source`, which must be validated.
    @inline(__always)
    public mutating func noteAuthenticPacket(from source: SocketAddress, at now: MonotonicTime) {
        if source == selected {
            selectedSeen = now
            lastSignOfLife = now
        } else {
            noteSignOfLife(from: source, at: now)
        }
    }
}
