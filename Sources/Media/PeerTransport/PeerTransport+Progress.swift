internal import DTLS
internal import ICE
internal import MediaControl
internal import Primitives
internal import SRTP

extension PeerTransport {
    /// Takes over credentials and fingerprint of the remote side.
    func adopt(_ new: RemoteTransport, at now: MonotonicTime) {
        // Another fingerprint asks for another association (RFC 8842 section 4); that is a new peer here.
        if dtls != nil, remote?.fingerprintSHA256 != new.fingerprintSHA256 { return end(.fingerprintMismatch) }
        remote = new
        ice.setRemote(ICECredential(ufrag: new.ice.ufrag, password: new.ice.password), at: now)
    }

    /// Translates what ICE has to say.
    func takeICEEvents(at now: MonotonicTime, into output: inout OutboundBatch) {
        while let event = ice.pollEvent() {
            switch event {
            case .validated(let address): events.append(.addressValidated(address))
            case .released(let address): events.append(.addressReleased(address))
            case .credentialsReplaced(let ufrag): events.append(.ufragReleased(String(decoding: ufrag, as: UTF8.self)))
            case .selected(let address, let isMove):
                media.pointee.destination = address
                if isMove, srtp != nil { events.append(.moved(address)) }
                startHandshake(at: now, into: &output)
                dtls?.follow(to: address, at: now, into: &output)
                ice.advance(to: now, stun: context.stun, random: &context.random, into: &output)
            case .setupTimedOut: end(.iceTimeout)
            case .consentLost: end(.consentLost)
            }
        }
    }

    /// Begins DTLS once there is an address to talk to and a fingerprint to hold the peer to.
    func startHandshake(at now: MonotonicTime, into output: inout OutboundBatch) {
        guard !isOver, let destination = ice.selected, let dtls = dtls ?? makeAssociation() else { return }
        dtls.start(at: now, to: destination, into: &output)
    }

    /// The association, made when the remote side is known.
    func makeAssociation() -> DTLSAssociation? {
        guard let remote else { return nil }
        dtls = DTLSAssociation(
            context: context.dtls, role: remote.localRole == .client ? .client : .server,
            fingerprintSHA256: remote.fingerprintSHA256, handshakeTimeout: context.settings.handshakeTimeout)
        return dtls
    }

    /// Looks at what a datagram or a timer did to the association.
    func noteHandshake() {
        guard let dtls else { return }
        switch dtls.state {
        case .idle, .handshaking: return
        case .connected(let keys): if srtp == nil { install(keys) }
        case .ended(let end): noteEnd(end)
        }
    }

    /// Keys are there: media runs from now on.
    func install(_ keys: DTLSKeys) {
        guard let profile = SRTPProfile(rawValue: keys.profile),
            let session = SRTPSession(profile: profile, sendingKey: keys.local, receivingKey: keys.remote)
        else { return end(.dtlsFailed) }
        srtp = session
        media.pointee.destination = remoteAddress
        events.append(.connected)
    }

    private func noteEnd(_ reason: DTLSEnd) {
        switch reason {
        case .fingerprintMismatch: end(.fingerprintMismatch)
        case .handshakeFailed(let text):
            failureText = text
            end(.dtlsFailed)
        case .timedOut: end(.dtlsTimeout)
        case .closedByPeer: end(.closedByPeer)
        case .closed: end(.removed)
        }
    }

    /// The last event; keys are freed at once.
    func end(_ reason: PeerEndReason) {
        guard !isOver else { return }
        isOver = true
        srtp = nil
        dtls = nil
        media.pointee.destination = nil
        earlyFlight = []
        events.append(.ended(reason))
    }
}
