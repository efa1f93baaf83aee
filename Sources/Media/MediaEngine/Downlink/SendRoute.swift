import Forwarding
import PeerTransport
import Primitives

/// Destination and time of the packets of one turn to one receiver.
struct SendRoute {
    /// What became of a packet.
    enum Outcome {
        case sent
        /// The batch must be flushed first.
        case batchFull
        /// There was nothing to write.
        case empty
        /// The keys were removed, or the packet was refused.
        case unprotected
    }

    let media: UnsafeMutablePointer<MediaPath>
    let destination: SocketAddress
    let now: MonotonicTime
    /// abs-send-time.
    let sendTime: UInt32

    /// nil while nothing may be sent to the peer. `sendTime` is that of `now`, computed once per turn.
    @inline(__always)
    init?(over media: UnsafeMutablePointer<MediaPath>, at now: MonotonicTime, sendTime: UInt32) {
        guard let destination = media.pointee.destination else { return nil }
        self.media = media
        self.destination = destination
        self.now = now
        self.sendTime = sendTime
    }

    init?(over media: UnsafeMutablePointer<MediaPath>, at now: MonotonicTime) {
        self.init(over: media, at: now, sendTime: SendStamp.sendTime(at: now))
    }
}
