internal import CSRTP
internal import Primitives

/// Both directions of one peer through libsrtp2, for every profile but AEAD_AES_128_GCM.
struct LibrarySession: ~Copyable {
    private let outbound: srtp_t
    private let inbound: srtp_t
    /// SSRCs for which libsrtp2 has made streams. It makes one for each new SSRC of an authentic packet, without a limit of its own.
    private var receiving: [UInt32] = []
    /// Those of them that may be removed when room is needed, oldest first.
    private var released: [UInt32] = []
    /// Those that have sent only reports, the one that has been silent for longest first: they may be removed, too.
    private var reporting: [UInt32] = []

    /// nil when libsrtp2 refuses the keys.
    init?(_ profile: SRTPProfile, sendingKey: [UInt8], receivingKey: [UInt8]) {
        guard let outbound = Self.create(profile, sendingKey, ssrc_any_outbound) else { return nil }
        guard let inbound = Self.create(profile, receivingKey, ssrc_any_inbound) else {
            srtp_dealloc(outbound)
            return nil
        }
        self.outbound = outbound
        self.inbound = inbound
        receiving.reserveCapacity(16)
    }

    deinit {
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
        policy.window_size = UInt(SRTPSession.replayWindow)
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

    func protectRTP(_ packet: UnsafeMutableRawPointer, length: Int) -> Int {
        var octets = Int32(length)
        return srtp_protect(outbound, packet, &octets) == srtp_err_status_ok ? Int(octets) : -1
    }

    func protectRTCP(_ packet: UnsafeMutableRawPointer, length: Int) -> Int {
        var octets = Int32(length)
        return srtp_protect_rtcp(outbound, packet, &octets) == srtp_err_status_ok ? Int(octets) : -1
    }

    func releaseSending(ssrc: UInt32) { _ = srtp_remove_stream(outbound, ssrc.bigEndian) }

    // MARK: Receiving

    mutating func unprotectRTP(_ packet: UnsafeMutableRawBufferPointer) -> SRTPResult {
        guard packet.count >= 12 else { return .dropped(.truncated) }
        return unprotect(packet, ssrcOffset: 8, isReport: false) { srtp_unprotect($0, $1, $2) }
    }

    mutating func unprotectRTCP(_ packet: UnsafeMutableRawBufferPointer) -> SRTPResult {
        guard packet.count >= 8 else { return .dropped(.truncated) }
        return unprotect(packet, ssrcOffset: 4, isReport: true) { srtp_unprotect_rtcp($0, $1, $2) }
    }

    private mutating func unprotect(
        _ packet: UnsafeMutableRawBufferPointer, ssrcOffset: Int, isReport: Bool,
        with call: (srtp_t, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int32>) -> srtp_err_status_t
    ) -> SRTPResult {
        let ssrc = UInt32(bigEndian: packet.loadUnaligned(fromByteOffset: ssrcOffset, as: UInt32.self))
        let isKnown = receiving.contains(ssrc)
        guard isKnown || receiving.count < SRTPSession.maximumReceivingStreams || replaceable != nil else {
            return .dropped(.tooManyStreams)
        }
        var octets = Int32(packet.count)
        let status = call(inbound, packet.baseAddress, &octets)
        guard status == srtp_err_status_ok else { return .dropped(Self.reason(for: status)) }
        let onlyReports = reporting.firstIndex(of: ssrc)
        if let onlyReports { reporting.remove(at: onlyReports) }
        if !isKnown { remember(ssrc) }
        if isReport, !isKnown || onlyReports != nil { reporting.append(ssrc) }
        return .clear(length: Int(octets))
    }

    /// The stream that is removed when there is no room, as in `ReceivingStreams`.
    private var replaceable: UInt32? { released.first ?? reporting.first }

    /// Only after an authentic packet: packets from unknown sources must not evict streams.
    private mutating func remember(_ ssrc: UInt32) {
        if receiving.count == SRTPSession.maximumReceivingStreams, let oldest = replaceable {
            released.removeAll { $0 == oldest }
            reporting.removeAll { $0 == oldest }
            receiving.removeAll { $0 == oldest }
            _ = srtp_remove_stream(inbound, oldest.bigEndian)
        }
        receiving.append(ssrc)
    }

    mutating func releaseReceiving(ssrc: UInt32) {
        if receiving.contains(ssrc), !released.contains(ssrc) { released.append(ssrc) }
    }

    mutating func retainReceiving(ssrc: UInt32) { released.removeAll { $0 == ssrc } }

    private static func reason(for status: srtp_err_status_t) -> DropReason {
        switch status {
        case srtp_err_status_auth_fail: .srtpAuthentication
        case srtp_err_status_replay_fail, srtp_err_status_replay_old: .srtpReplayed
        case srtp_err_status_parse_err, srtp_err_status_bad_param: .truncated
        default: .srtpError
        }
    }
}
