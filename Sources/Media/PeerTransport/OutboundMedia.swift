public import Primitives
internal import SRTP

/// Where and how a transport's packets leave: all that the packet path needs of it, as plain memory.
///
/// The transport owns it, keeps it up to date, and gives its address for life: reading through that costs no reference counting, and
/// one cache line instead of three objects.
public struct OutboundMedia {
    /// Where datagrams go; nil before ICE has selected an address and after the end.
    public internal(set) var destination: SocketAddress?
    /// Both of the transport's session; nil before DTLS is through and after the end.
    var sender: UnsafeMutablePointer<SRTPSender>?
    var session: Unmanaged<SRTPSession>?

    /// Encrypts the RTP packet of `length` bytes at the start of `slot` in place; the new length, or -1 when there are no keys or
    /// the packet is refused. The slot has `PeerTransport.protectionOverhead` bytes of room behind the packet.
    @inline(__always)
    public func protectRTP(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int {
        guard let sender, let base = slot.baseAddress else { return protectThroughLibrary(slot, length: length) }
        guard slot.count >= length &+ SRTPSender.tagLength else { return -1 }
        return sender.pointee.protect(base, length: length)
    }

    /// Asks for what `protectRTP` will read.
    @inline(__always) public func prefetch() { sender?.pointee.prefetch() }

    private func protectThroughLibrary(_ slot: UnsafeMutableRawBufferPointer, length: Int) -> Int {
        session?._withUnsafeGuaranteedRef { $0.protectRTP(slot, length: length) } ?? -1
    }
}
