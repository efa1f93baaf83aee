public import Primitives
internal import RTP
internal import SRTP

/// The source and destination of a transport's media: all that the packet path needs, as plain memory.
///
/// The transport owns it, keeps it up to date, and never changes its address: access through the pointer costs no reference counting, and
/// one cache line instead of three objects.
public struct MediaPath {
    /// Source of the peer's media; nil before there is a validated address and keys, and after the end.
    var address: SocketAddress?
    /// Whether `address` has answered the server's own checks. Updated when that changes, never for each packet.
    var hasConsent = false
    /// Of the transport's session; nil before the DTLS handshake is complete, after the end, and for profiles that libsrtp2 serves.
    var sender: UnsafeMutablePointer<SRTPSender>?
    /// Copies packets in clear text; nil except during a capture. It is placed next to the fields that sending reads anyway. The code that sets it keeps the
    /// tap, and sets nil before the tap is freed.
    public var tap: Unmanaged<PacketTap>?
    var receiver: UnsafeMutablePointer<SRTPReceiver>?
    var session: Unmanaged<SRTPSession>?
    /// When an authentic packet last arrived from `address`: a sign of life that ICE reads at its next check.
    var lastReceived = MonotonicTime.zero
    /// Bytes of such packets since then.
    var received = 0

    /// Where media may be sent; nil also while `address` has not consented.
    @inline(__always) public var destination: SocketAddress? { hasConsent ? address : nil }

    /// Decrypts an RTP or RTCP packet from the media address; nil if the transport itself must process it.
    @inline(__always)
    public mutating func receive(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime
    ) -> Received? {
        guard let receiver, datagram.count >= 12, DatagramKind(firstByte: datagram[0]) == .media,
            let address, address == source
        else { return nil }
        let isRTCP = RTCPType.contains(datagram[1])
        let result = isRTCP ? receiver.pointee.unprotectRTCP(datagram) : receiver.pointee.unprotectRTP(datagram)
        switch result {
        case .dropped(let reason): return .dropped(reason)
        case .clear(let length):
            lastReceived = now
            received &+= length
            return isRTCP ? .rtcp(length: length) : .rtp(length: length)
        }
    }

    /// Encrypts the RTP packet of `length` bytes at the start of `slot` in place; returns the new length, or -1 when there are no keys or
    /// the packet is refused. The slot has `WebRTCTransport.protectionOverhead` bytes of room after the packet.
    @inline(__always)
    public mutating func protectRTP(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int {
        guard let sender, let base = slot.baseAddress else { return protectThroughLibrary(slot, length: length) }
        guard slot.count >= length &+ SRTPSender.tagLength else { return -1 }
        return sender.pointee.protect(base, length: length)
    }

    /// Copies a packet in clear text for a capture, if there is one.
    @inlinable @inline(__always)
    public func capture(
        _ packet: UnsafeMutableRawBufferPointer, length: Int, isSent: Bool, isRTCP: Bool, at now: MonotonicTime
    ) {
        if let tap { Self.note(packet, length, isSent, isRTCP, now, tap) }
    }

    @usableFromInline @inline(never)
    static func note(
        _ packet: UnsafeMutableRawBufferPointer, _ length: Int, _ isSent: Bool, _ isRTCP: Bool, _ now: MonotonicTime,
        _ tap: Unmanaged<PacketTap>
    ) {
        tap._withUnsafeGuaranteedRef {
            $0.note(UnsafeRawBufferPointer(rebasing: packet[..<length]), isSent: isSent, isRTCP: isRTCP, at: now)
        }
    }

    /// Prefetches what `protectRTP` will read.
    @inline(__always) public func prefetchForSending() { sender?.pointee.prefetch() }

    /// Prefetches the receiver, which `prefetchKeys` reads.
    @inline(__always) public func prefetchReceiver() {
        if let receiver { Prefetch.lines(receiver, MemoryLayout<SRTPReceiver>.size) }
    }

    /// Prefetches what `receive` will read for an RTCP packet.
    @inline(__always) public func prefetchKeys() { receiver?.pointee.prefetchForReports() }

    private func protectThroughLibrary(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int {
        session?._withUnsafeGuaranteedRef { $0.protectRTP(slot, length: length) } ?? -1
    }
}
