public import Primitives
internal import SRTP

/// Where and how a transport's media goes and comes: all that the packet path needs of it, as plain memory.
///
/// The transport owns it, keeps it up to date, and gives its address for life: reading through that costs no reference counting, and
/// one cache line instead of three objects.
public struct MediaPath {
    /// Where the peer's media comes from; nil before there is such an address or keys, and after the end.
    var address: SocketAddress?
    /// Whether `address` has answered the server's own checks. It is looked at when it changes, never for each packet.
    var hasConsent = false
    /// Of the transport's session; nil before DTLS is through, after the end, and under profiles that libsrtp2 serves.
    var sender: UnsafeMutablePointer<SRTPSender>?
    var receiver: UnsafeMutablePointer<SRTPReceiver>?
    var session: Unmanaged<SRTPSession>?
    /// When an authentic packet last came from `address`: a sign of life that ICE is told of when it next looks.
    var lastReceived = MonotonicTime.zero
    /// Bytes of such packets since then.
    var received = 0

    /// Where media may be sent to; nil as well while `address` has not consented.
    @inline(__always) public var destination: SocketAddress? { hasConsent ? address : nil }

    /// Takes a packet of media or a report from where the peer's media goes; nil where the transport itself must look at it.
    @inline(__always)
    public mutating func receive(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime
    ) -> Received? {
        guard let receiver, datagram.count >= 12, datagram[0] & 0xc0 == 0x80, let address, address == source
        else { return nil }
        // RFC 5761 section 4: RTCP packet types 192 to 223 stand where RTP has marker and payload type.
        let isRTCP = datagram[1] & 0xe0 == 0xc0
        let result = isRTCP ? receiver.pointee.unprotectRTCP(datagram) : receiver.pointee.unprotectRTP(datagram)
        switch result {
        case .dropped(let reason): return .dropped(reason)
        case .clear(let length):
            lastReceived = now
            received &+= length
            return isRTCP ? .rtcp(length: length) : .rtp(length: length)
        }
    }

    /// Encrypts the RTP packet of `length` bytes at the start of `slot` in place; the new length, or -1 when there are no keys or
    /// the packet is refused. The slot has `PeerTransport.protectionOverhead` bytes of room behind the packet.
    @inline(__always)
    public func protectRTP(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int {
        guard let sender, let base = slot.baseAddress else { return protectThroughLibrary(slot, length: length) }
        guard slot.count >= length &+ SRTPSender.tagLength else { return -1 }
        return sender.pointee.protect(base, length: length)
    }

    /// Asks for what `protectRTP` will read.
    @inline(__always) public func prefetchForSending() { sender?.pointee.prefetch() }

    /// Asks for the receiver, through which `prefetchKeys` goes.
    @inline(__always) public func prefetchReceiver() {
        if let receiver { Prefetch.lines(receiver, MemoryLayout<SRTPReceiver>.size) }
    }

    /// Asks for what `receive` will read of a report.
    @inline(__always) public func prefetchKeys() { receiver?.pointee.prefetchForReports() }

    private func protectThroughLibrary(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int {
        session?._withUnsafeGuaranteedRef { $0.protectRTP(slot, length: length) } ?? -1
    }
}
