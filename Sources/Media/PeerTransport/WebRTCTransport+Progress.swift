internal import DTLS
internal import DataChannels
internal import ICE
internal import MediaControl
internal import Primitives
internal import SRTP

extension WebRTCTransport {
    /// Applies credentials and fingerprint of the remote side.
    func adopt(_ new: RemoteTransport, at now: MonotonicTime) {
        // Another fingerprint requires another association (RFC 8842 section 4); here that is a new peer.
        if dtls != nil, remote?.fingerprintSHA256 != new.fingerprintSHA256 { return end(.fingerprintMismatch) }
        remote = new
        ice.setRemote(ICECredential(ufrag: new.ice.ufrag, password: new.ice.password), at: now)
    }

    /// Runs due ICE timers.
    func advanceICE(to now: MonotonicTime, into output: inout OutboundBatch) {
        ice.advance(to: now, stun: context.stun, random: &context.random, into: &output)
        processICEEvents(at: now, into: &output)
    }

    /// Translates ICE events, and updates the media path.
    func processICEEvents(at now: MonotonicTime, into output: inout OutboundBatch) {
        while let event = ice.pollEvent() {
            switch event {
            case .validated(let address): events.append(.addressValidated(address))
            case .consented(let address): events.append(.addressConsented(address))
            case .released(let address): events.append(.addressReleased(address))
            case .credentialsReplaced(let ufrag): events.append(.ufragReleased(String(decoding: ufrag, as: UTF8.self)))
            case .nominated(let address):
                follow(to: address, at: now, into: &output)
                // The server's check may be due without another datagram or timer.
                ice.advance(to: now, stun: context.stun, random: &context.random, into: &output)
                hasNearerDeadline = true
            case .selected(let address, let isMove):
                if isMove, srtp != nil { events.append(.moved(address)) }
                follow(to: address, at: now, into: &output)
                hasNearerDeadline = true
            case .setupTimedOut: end(.iceTimeout)
            case .consentExpired: end(.consentExpired)
            }
        }
        startHandshake(at: now, into: &output)
        updatePath()
    }

    /// Continues a handshake at another address.
    private func follow(to address: SocketAddress, at now: MonotonicTime, into output: inout OutboundBatch) {
        guard let dtls else { return }
        bound(to: address, &output) { dtls.follow(to: address, at: now, into: &$0) }
    }

    /// Updates the media address, and whether media may be sent to it.
    func updatePath() {
        guard !isOver, srtp != nil else { return }
        noteSignOfLife()
        media.pointee.address = remoteAddress
        let hasConsent = remoteAddress.map { ice.hasConsent($0) } ?? false
        guard hasConsent != media.pointee.hasConsent else { return }
        media.pointee.hasConsent = hasConsent
        events.append(hasConsent ? .sendingAllowed : .sendingForbidden)
    }

    /// Lets DTLS write to `destination`, and discards what ICE does not allow to be sent there: it counts as lost, and DTLS retransmits it.
    func bound(to destination: SocketAddress, _ output: inout OutboundBatch, _ write: (inout OutboundBatch) -> Void) {
        let mark = output.mark
        write(&output)
        let length = output.used - mark.used
        if length > 0, !ice.maySend(length, to: destination) { output.rewind(to: mark) }
    }

    /// Starts DTLS once there is a remote address and a fingerprint to verify.
    func startHandshake(at now: MonotonicTime, into output: inout OutboundBatch) {
        guard !isOver, srtp == nil, let destination = remoteAddress, let dtls = dtls ?? makeAssociation() else {
            return
        }
        bound(to: destination, &output) { dtls.start(at: now, to: destination, into: &$0) }
    }

    /// The association, created when the remote side is known.
    func makeAssociation() -> DTLSAssociation? {
        guard let remote else { return nil }
        dtls = DTLSAssociation(
            context: context.dtls, role: remote.localRole == .client ? .client : .server,
            fingerprintSHA256: remote.fingerprintSHA256, handshakeTimeout: context.settings.handshakeTimeout)
        return dtls
    }

    /// Processes the state of the association after a datagram or a timer.
    func noteHandshake(at now: MonotonicTime) {
        guard let dtls else { return }
        switch dtls.state {
        case .idle, .handshaking: return
        case .connected(let keys): if srtp == nil { install(keys, at: now) }
        case .ended(let end): noteEnd(end)
        }
    }

    /// Installs the keys: media can flow from now on.
    func install(_ keys: DTLSKeys, at now: MonotonicTime) {
        guard let profile = SRTPProfile(rawValue: keys.profile),
            let session = SRTPSession(profile: profile, sendingKey: keys.local, receivingKey: keys.remote)
        else { return fail(.other) }
        srtp = session
        data?.start(at: now)
        events.append(.connected)
        updatePath()
    }

    private func noteEnd(_ reason: DTLSEnd) {
        switch reason {
        case .fingerprintMismatch: end(.fingerprintMismatch)
        case .handshakeFailed(let failure): fail(failure)
        case .timedOut: end(.dtlsTimeout)
        case .closedByPeer: end(.closedByPeer)
        case .closed: end(.removed)
        }
    }

    private func fail(_ failure: HandshakeFailure) {
        context.handshakeFailures[failure, default: 0] &+= 1
        end(.dtlsFailed)
    }

    /// Sends the last event; keys are freed at once.
    func end(_ reason: PeerEndReason) {
        guard !isOver else { return }
        isOver = true
        srtp = nil
        dtls = nil
        data = nil
        media.pointee.address = nil
        media.pointee.hasConsent = false
        earlyFlight = []
        events.append(.ended(reason))
    }
}
