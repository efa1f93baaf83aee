internal import CSRTP
public import Primitives

/// The outcome of a received packet.
public enum SRTPResult: Sendable, Hashable {
    /// The decrypted packet has this length.
    case clear(length: Int)
    case dropped(DropReason)
}

/// Both directions of one peer's SRTP and SRTCP (RFC 3711); all work is done in place.
///
/// AEAD_AES_128_GCM, which nearly every client negotiates, uses `sender` and `receiver`; libsrtp2 serves the other profiles.
public final class SRTPSession {
    /// Replay window in packets: at 1,000 packets/s (a 4 Mbit/s layer at its peak) one second of reordering.
    public static let replayWindow = PacketWindow.length
    /// SSRCs with which a peer may send. Three simulcast layers with RTX for 32 tracks are 192; reports have their own SSRCs, and some may be
    /// replaced.
    public static let maximumReceivingStreams = 256

    /// The negotiated profile.
    public let profile: SRTPProfile
    /// Both directions under AES-128 GCM, for the packet path; nil under other profiles. Valid as long as the session.
    public let sender: UnsafeMutablePointer<SRTPSender>?
    public let receiver: UnsafeMutablePointer<SRTPReceiver>?
    /// The other profiles.
    private var library: LibrarySession?

    /// A session with the given master keys (key followed by salt); nil when they are not of the profile's length or a library refuses them.
    ///
    /// The caller must have seen `SRTPLibrary.start()` succeed.
    public convenience init?(profile: SRTPProfile, sendingKey: [UInt8], receivingKey: [UInt8]) {
        self.init(profile: profile, sendingKey: sendingKey, receivingKey: receivingKey, kernel: SRTPLibrary.kernel)
    }

    /// `kernel` serves AES-128 GCM; nil leaves that to libsrtp2 too.
    init?(profile: SRTPProfile, sendingKey: [UInt8], receivingKey: [UInt8], kernel: UnsafePointer<csrtp_gcm_kernel>?) {
        let length = profile.keyLength + profile.saltLength
        guard sendingKey.count == length, receivingKey.count == length else { return nil }
        self.profile = profile
        guard let kernel, profile == .aeadAES128GCM else {
            guard let library = LibrarySession(profile, sendingKey: sendingKey, receivingKey: receivingKey) else {
                return nil
            }
            self.library = consume library
            sender = nil
            receiver = nil
            return
        }
        guard let outbound = SRTPSender(masterKey: sendingKey, kernel: kernel),
            let inbound = SRTPReceiver(masterKey: receivingKey, kernel: kernel)
        else { return nil }
        let sender = UnsafeMutablePointer<SRTPSender>.allocate(capacity: 1)
        sender.initialize(to: outbound)
        self.sender = sender
        let receiver = UnsafeMutablePointer<SRTPReceiver>.allocate(capacity: 1)
        receiver.initialize(to: inbound)
        self.receiver = receiver
        library = nil
    }

    deinit {
        sender?.deinitialize(count: 1)
        sender?.deallocate()
        receiver?.deinitialize(count: 1)
        receiver?.deallocate()
    }

    // MARK: Sending

    /// Encrypts the RTP packet of `length` bytes at the start of `slot`; its new length, or nil when it is refused.
    ///
    /// The slot must have `profile.tagLength` bytes of room behind the packet.
    public func protectRTP(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int? {
        guard slot.count >= length + profile.tagLength, let base = slot.baseAddress else { return nil }
        let total = sender?.pointee.protect(base, length: length) ?? library?.protectRTP(base, length: length) ?? -1
        return total < 0 ? nil : total
    }

    /// Encrypts the RTCP compound of `length` bytes at the start of `slot`; its new length, or nil when it is refused.
    ///
    /// The slot must have `profile.tagLength` + 4 bytes of room behind the packet (the SRTCP index, RFC 3711 section
    /// 3.4).
    public func protectRTCP(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int? {
        guard slot.count >= length + profile.tagLength + 4, let base = slot.baseAddress else { return nil }
        let total =
            sender?.pointee.protectRTCP(base, length: length) ?? library?.protectRTCP(base, length: length) ?? -1
        return total < 0 ? nil : total
    }

    /// Removes an SSRC that is no longer sent. It must never be used again with these keys.
    public func releaseSendingStream(ssrc: UInt32) {
        sender?.pointee.release(ssrc: ssrc)
        library?.releaseSending(ssrc: ssrc)
    }

    // MARK: Receiving

    /// Decrypts an RTP packet in place after checking its tag and that it was not seen before.
    public func unprotectRTP(_ packet: UnsafeMutableRawBufferPointer) -> SRTPResult {
        receiver?.pointee.unprotectRTP(packet) ?? library?.unprotectRTP(packet) ?? .dropped(.srtpNotReady)
    }

    /// Decrypts an RTCP compound in place after checking its tag and that it was not seen before.
    public func unprotectRTCP(_ packet: UnsafeMutableRawBufferPointer) -> SRTPResult {
        receiver?.pointee.unprotectRTCP(packet) ?? library?.unprotectRTCP(packet) ?? .dropped(.srtpNotReady)
    }

    /// Marks an SSRC as no longer received: it is the first to be removed when room is needed. Its replay window stays until then, so that old
    /// packets cannot be replayed.
    public func releaseReceivingStream(ssrc: UInt32) {
        receiver?.pointee.release(ssrc: ssrc)
        library?.releaseReceiving(ssrc: ssrc)
    }

    /// Reverts `releaseReceivingStream`: the SSRC is received again and must not be removed.
    public func retainReceivingStream(ssrc: UInt32) {
        receiver?.pointee.retain(ssrc: ssrc)
        library?.retainReceiving(ssrc: ssrc)
    }
}
