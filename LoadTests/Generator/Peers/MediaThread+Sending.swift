import CLoadIO
import Primitives
import RTP
import Simulation

extension MediaThread {
    /// The largest datagram: payload, header, extensions, RTX, tag.
    static let slotLength = 1_500

    /// Sends the frames of a stream that are due, and sets the next alarm.
    func sendFrame(of stream: SendStream) {
        guard let peer = peers[owners[Int(stream.index)]], !peer.isEnded else { return }
        now = loadio_monotonic()
        let due = stream.nextFrame
        if now - due > 5_000_000 + stream.plan.burst { counters.lateFrames &+= 1 }
        // A generator that is late catches up, but with at most half a second at once.
        if now - due > 500_000_000 + stream.plan.burst { stream.skip(to: now - stream.plan.burst) }
        repeat {
            for loopIndex in stream.beginFrame(at: now) { sendPacket(loopIndex, of: stream, by: peer) }
            send(peer)
        } while stream.nextFrame <= now
        let next = stream.plan.burst == 0 ? stream.nextFrame : now + stream.plan.burst
        schedule(.frame, Int(stream.index), at: next)
    }

    private func sendPacket(_ loopIndex: Int, of stream: SendStream, by peer: Peer) {
        guard let slot = batch.reserve(Self.slotLength) else { return }
        peer.transportSequence &+= 1
        let length = stream.write(loopIndex, at: now, transportSequence: peer.transportSequence, to: slot)
        guard let protected = peer.transport.protectRTP(slot, length: length) else { return }
        batch.commit(length: protected, to: peer.plan.destination)
        counters.sent &+= 1
        counters.sentBytes &+= UInt64(length)
    }

    /// Retransmits a packet that the server misses.
    func resend(_ number: UInt16, of stream: SendStream, by peer: Peer) {
        guard let slot = batch.reserve(Self.slotLength) else { return }
        peer.transportSequence &+= 1
        guard let length = stream.writeRepeat(number, transportSequence: peer.transportSequence, to: slot),
            let protected = peer.transport.protectRTP(slot, length: length)
        else { return }
        batch.commit(length: protected, to: peer.plan.destination)
        counters.resent &+= 1
    }

    /// Encrypts and queues an RTCP compound written by `write`.
    func sendRTCP(_ peer: Peer, _ write: (inout RTCPWriter) -> Void) {
        guard peer.transport.isConnected, let slot = batch.reserve(Self.slotLength) else { return }
        var writer = RTCPWriter(UnsafeMutableRawBufferPointer(rebasing: slot[0..<1_200]))
        write(&writer)
        guard writer.length > 0, let protected = peer.transport.protectRTCP(slot, length: writer.length) else { return }
        batch.commit(length: protected, to: peer.plan.destination)
    }
}
