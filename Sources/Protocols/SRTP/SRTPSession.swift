internal import CSRTP
public import Primitives

/// What became of a received packet.
public enum SRTPResult: Sendable, Hashable {
    /// The clear packet has this length.
    case clear(length: Int)
    case dropped(DropReason)
}

/// Both directions of one peer's SRTP and SRTCP (RFC 3711), through libsrtp2 but for `sender`; all work is done in place.
public final class SRTPSession {
    /// Replay window in packets: at 1,000 packets/s (a 4 Mbit/s layer at its peak) one second of reordering.
    public static let replayWindow = 1_024
    /// SSRCs that a peer may send with. Three simulcast layers with RTX for 16 tracks are 96; reports have SSRCs of
    /// their own.
    public static let maximumReceivingStreams = 128

    /// The agreed protection.
    public let profile: SRTPProfile
    private let outbound: srtp_t
    private let inbound: srtp_t
    /// Encrypts RTP under AES-128 GCM without libsrtp2, for the packet path; nil under other profiles. Valid as long as the session.
    public let sender: UnsafeMutablePointer<SRTPSender>?
    /// SSRCs that libsrtp2 has made streams for. It makes one for each new SSRC of an authentic packet, without a
    /// bound of its own.
    private var receiving: [UInt32] = []
    /// Those of them that may go when room is needed, oldest first.
    private var released: [UInt32] = []

    /// A session with the given master keys (key followed by salt); nil when libsrtp2 refuses them.
    ///
    /// The caller must have seen `SRTPLibrary.start()` succeed.
    public convenience init?(profile: SRTPProfile, sendingKey: [UInt8], receivingKey: [UInt8]) {
        self.init(profile: profile, sendingKey: sendingKey, receivingKey: receivingKey, kernel: SRTPLibrary.kernel)
    }

    /// `kernel` serves AES-128 GCM towards the peer.
    init?(
        profile: SRTPProfile, sendingKey: [UInt8], receivingKey: [UInt8], kernel: UnsafePointer<csrtp_gcm_kernel>
    ) {
        let length = profile.keyLength + profile.saltLength
        guard sendingKey.count == length, receivingKey.count == length,
            let outbound = Self.create(profile, sendingKey, ssrc_any_outbound)
        else { return nil }
        guard let inbound = Self.create(profile, receivingKey, ssrc_any_inbound) else {
            srtp_dealloc(outbound)
            return nil
        }
        var sender: UnsafeMutablePointer<SRTPSender>?
        if profile == .aeadAES128GCM {
            guard let made = SRTPSender(masterKey: sendingKey, kernel: kernel) else {
                srtp_dealloc(outbound)
                srtp_dealloc(inbound)
                return nil
            }
            sender = .allocate(capacity: 1)
            sender?.initialize(to: made)
        }
        self.sender = sender
        self.profile = profile
        self.outbound = outbound
        self.inbound = inbound
        receiving.reserveCapacity(16)
    }

    deinit {
        sender?.deinitialize(count: 1)
        sender?.deallocate()
        srtp_dealloc(outbound)
        srtp_dealloc(inbound)
    }

    private static func create(_ profile: SRTPProfile, _ key: [UInt8], _ direction: srtp_ssrc_type_t) -> srtp_t? {
        var policy = srtp_policy_t()
        switch profile {
        case .aes128CM80:
            srtp_crypto_policy_set_rtp_default(&policy.rtp)
            srtp_crypto_policy_set_rtcp_default(&policy.rtcp)
        case .aeadAES128GCM:
            srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp)
            srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp)
        case .aeadAES256GCM:
            srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp)
            srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtcp)
        }
        policy.ssrc.type = direction
        policy.window_size = UInt(replayWindow)
        policy.allow_repeat_tx = profile.allowsRepeatedSequenceNumbers ? 1 : 0
        var session: srtp_t?
        var key = key
        // libsrtp2 reads the key during srtp_create only.
        let status = key.withUnsafeMutableBufferPointer { buffer in
            policy.key = buffer.baseAddress
            return srtp_create(&session, &policy)
        }
        for index in key.indices { key[index] = 0 }
        return status == srtp_err_status_ok ? session : nil
    }

    // MARK: Sending

    /// Encrypts the RTP packet of `length` bytes at the start of `slot`; its new length, or nil when it is refused.
    ///
    /// The slot must have `profile.tagLength` bytes of room behind the packet.
    public func protectRTP(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int? {
        guard slot.count >= length + profile.tagLength, let base = slot.baseAddress else { return nil }
        if let sender {
            let total = sender.pointee.protect(base, length: length)
            return total < 0 ? nil : total
        }
        var octets = Int32(length)
        return srtp_protect(outbound, slot.baseAddress, &octets) == srtp_err_status_ok ? Int(octets) : nil
    }

    /// Encrypts the RTCP compound of `length` bytes at the start of `slot`; its new length, or nil when libsrtp2
    /// refuses.
    ///
    /// The slot must have `profile.tagLength` + 4 bytes of room behind the packet (the SRTCP index, RFC 3711 section
    /// 3.4).
    public func protectRTCP(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int? {
        guard slot.count >= length + profile.tagLength + 4 else { return nil }
        var octets = Int32(length)
        return srtp_protect_rtcp(outbound, slot.baseAddress, &octets) == srtp_err_status_ok ? Int(octets) : nil
    }

    /// Forgets an SSRC that is not sent any more. It must never be used again with these keys.
    public func releaseSendingStream(ssrc: UInt32) {
        sender?.pointee.release(ssrc: ssrc)
        _ = srtp_remove_stream(outbound, ssrc.bigEndian)
    }

    // MARK: Receiving

    /// Decrypts an RTP packet in place after checking its tag and that it was not seen before.
    public func unprotectRTP(_ packet: UnsafeMutableRawBufferPointer) -> SRTPResult {
        guard packet.count >= 12 else { return .dropped(.truncated) }
        return unprotect(packet, ssrcOffset: 8) { srtp_unprotect($0, $1, $2) }
    }

    /// Decrypts an RTCP compound in place after checking its tag and that it was not seen before.
    public func unprotectRTCP(_ packet: UnsafeMutableRawBufferPointer) -> SRTPResult {
        guard packet.count >= 8 else { return .dropped(.truncated) }
        return unprotect(packet, ssrcOffset: 4) { srtp_unprotect_rtcp($0, $1, $2) }
    }

    private func unprotect(
        _ packet: UnsafeMutableRawBufferPointer, ssrcOffset: Int,
        with call: (srtp_t, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int32>) -> srtp_err_status_t
    ) -> SRTPResult {
        let ssrc = UInt32(bigEndian: packet.loadUnaligned(fromByteOffset: ssrcOffset, as: UInt32.self))
        let isKnown = receiving.contains(ssrc)
        guard isKnown || receiving.count < Self.maximumReceivingStreams || !released.isEmpty else {
            return .dropped(.tooManyStreams)
        }
        var octets = Int32(packet.count)
        let status = call(inbound, packet.baseAddress, &octets)
        guard status == srtp_err_status_ok else { return .dropped(Self.reason(for: status)) }
        if !isKnown { remember(ssrc) }
        return .clear(length: Int(octets))
    }

    /// Only after an authentic packet: a stranger's packets must not push streams out.
    private func remember(_ ssrc: UInt32) {
        if receiving.count == Self.maximumReceivingStreams, let oldest = released.first {
            released.removeFirst()
            receiving.removeAll { $0 == oldest }
            _ = srtp_remove_stream(inbound, oldest.bigEndian)
        }
        receiving.append(ssrc)
    }

    /// Marks an SSRC as not received any more: when room is needed it goes first. Its replay window stays until then,
    /// so that old packets cannot be played again.
    public func releaseReceivingStream(ssrc: UInt32) {
        if receiving.contains(ssrc), !released.contains(ssrc) { released.append(ssrc) }
    }

    /// Takes back `releaseReceivingStream`: the SSRC is received again and must not make room for others.
    public func retainReceivingStream(ssrc: UInt32) { released.removeAll { $0 == ssrc } }

    private static func reason(for status: srtp_err_status_t) -> DropReason {
        switch status {
        case srtp_err_status_auth_fail: .srtpAuthentication
        case srtp_err_status_replay_fail, srtp_err_status_replay_old: .srtpReplayed
        case srtp_err_status_parse_err, srtp_err_status_bad_param: .truncated
        default: .srtpError
        }
    }
}
