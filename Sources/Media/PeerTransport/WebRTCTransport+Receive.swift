internal import DTLS
internal import ICE
public import Primitives
internal import RTP
internal import SRTP

extension WebRTCTransport {
    /// Processes a datagram; RTP and RTCP are decrypted in place.
    ///
    /// DTLS and SRTP are accepted only from addresses that an ICE check has validated.
    public func receive(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime,
        into output: inout OutboundBatch
    ) -> Received {
        guard !isOver else { return .dropped(.unknownSource) }
        guard datagram.count >= 2 else { return .dropped(.truncated) }
        noteSignOfLife()
        switch DatagramKind(firstByte: datagram[0]) {
        case .media: return receiveMedia(datagram, source, now, &output)
        case .stun:
            let reason = ice.receive(
                UnsafeRawBufferPointer(datagram), from: source, at: now, stun: context.stun, random: &context.random,
                into: &output)
            processICEEvents(at: now, into: &output)
            return reason.map { .dropped($0) } ?? .nothing
        case .dtls: return receiveDTLS(datagram, source, now, &output)
        case .unknown: return .dropped(.unknownProtocol)
        }
    }

    @inline(__always)
    private func receiveMedia(
        _ datagram: UnsafeMutableRawBufferPointer, _ source: SocketAddress, _ now: MonotonicTime,
        _ output: inout OutboundBatch
    ) -> Received {
        guard ice.isValidated(source) else { return .dropped(.srtpUnvalidatedTuple) }
        guard let srtp else { return .dropped(.srtpNotReady) }
        let isRTCP = RTCPType.contains(datagram[1])
        let result = isRTCP ? srtp.unprotectRTCP(datagram) : srtp.unprotectRTP(datagram)
        switch result {
        case .dropped(let reason): return .dropped(reason)
        case .clear(let length):
            ice.noteAuthenticPacket(from: source, at: now)
            if ice.hasEvents { processICEEvents(at: now, into: &output) }
            if !media.pointee.hasConsent || source != media.pointee.address { noteUnconsented(source, length) }
            return isRTCP ? .rtcp(length: length) : .rtp(length: length)
        }
    }

    /// Decrypts an RTP or RTCP packet from an unknown address in place, if it is the peer's: its NAT has assigned it another port, and the server checks that
    /// at once. nil: it is not the peer's, or was received before; then its bytes are unusable.
    public func receiveRemapped(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime,
        into output: inout OutboundBatch
    ) -> Received? {
        guard !isOver, let srtp, datagram.count >= 12 else { return nil }
        noteSignOfLife()
        let isRTCP = RTCPType.contains(datagram[1])
        let result = isRTCP ? srtp.unprotectRTCP(datagram) : srtp.unprotectRTP(datagram)
        guard case .clear(let length) = result else { return nil }
        ice.noteRemapped(
            datagram.count, from: source, at: now, stun: context.stun, random: &context.random, into: &output)
        processICEEvents(at: now, into: &output)
        return isRTCP ? .rtcp(length: length) : .rtp(length: length)
    }

    /// Media arrived from an address to which none may be sent.
    private func noteUnconsented(_ source: SocketAddress, _ length: Int) {
        ice.noteReceived(length, from: source)
        guard ice.selected == nil, source != provisional else { return }
        provisional = source
        updatePath()
    }

    private func receiveDTLS(
        _ datagram: UnsafeMutableRawBufferPointer, _ source: SocketAddress, _ now: MonotonicTime,
        _ output: inout OutboundBatch
    ) -> Received {
        guard ice.isValidated(source) else { return .dropped(.dtlsUnvalidatedTuple) }
        ice.noteReceived(datagram.count, from: source)
        provisional = source
        // Without the peer's description there is no fingerprint. A client that answers the server's offer is often faster than
        // its answer; its ClientHello is kept so that the client need not retransmit it.
        guard let dtls = dtls ?? makeAssociation() else {
            return holdEarly(datagram) ? .nothing : .dropped(.dtlsUnexpected)
        }
        earlyFlight = []
        // A peer that is about to move is answered at its new address.
        let destination = source == ice.nominee ? source : ice.selected ?? source
        var reason: DropReason?
        bound(to: destination, &output) {
            dtls.start(at: now, to: destination, into: &$0)
            reason = dtls.receive(UnsafeRawBufferPointer(datagram), at: now, to: destination, into: &$0)
        }
        noteHandshake(at: now)
        let dataReason = receiveData(at: now)
        return (reason ?? dataReason).map { .dropped($0) } ?? .nothing
    }

    /// Keeps a datagram of a first flight for `setRemote`; false when there is no room. A ClientHello with post-quantum keys has
    /// two datagrams; GStreamer splits its ClientHello into fragments of 230 bytes.
    private func holdEarly(_ datagram: UnsafeMutableRawBufferPointer) -> Bool {
        guard datagram[0] == 22, datagram.count <= 1_500, earlyFlight.count < 4 else { return false }
        earlyFlight.append(Array(datagram))
        return true
    }

    /// Passes the kept datagrams to the association once the peer's description is known.
    func processEarlyFlight(at now: MonotonicTime, into output: inout OutboundBatch) {
        guard !earlyFlight.isEmpty, !isOver, let dtls, let destination = remoteAddress else { return }
        for datagram in earlyFlight {
            bound(to: destination, &output) { output in
                _ = datagram.withUnsafeBytes { dtls.receive($0, at: now, to: destination, into: &output) }
            }
        }
        earlyFlight = []
        noteHandshake(at: now)
        _ = receiveData(at: now)
    }
}
