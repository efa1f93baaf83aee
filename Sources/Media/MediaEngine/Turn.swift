import Forwarding
import Primitives

/// The collected work of one turn, and the progress of writing it, so that writing can continue after a flush.
struct Turn: ~Copyable {
    /// What is being written.
    enum Phase {
        /// Nothing: a new turn may begin.
        case idle
        case repeats, packets, feedback
    }

    /// A packet to retransmit in this turn.
    struct Repeat {
        var subscription: Int32
        /// Extended output number.
        var sequence: UInt32
    }

    var phase = Phase.idle
    /// Tracks with packets.
    var dirtyTracks = WorkList<Int32>(capacity: 64)
    /// How many of them are in the middle of a frame.
    var openFrames = 0
    /// Peers to process at the end of the turn.
    var touchedPeers = WorkList<Int32>(capacity: 64)
    /// Subscribers with videos that await a decision before they start.
    var awaitingPeers = WorkList<Int32>(capacity: 64)
    /// Subscribers with packets.
    var pendingPeers = WorkList<Int32>(capacity: 64)
    var repeats = WorkList<Repeat>(capacity: 64)
    /// The packets, by subscription.
    var plan = WorkList<SentPacket>(capacity: 1_024)

    /// Positions in the lists of retransmissions, of peers with packets, and of touched peers.
    var repeatCursor = 0
    var peerCursor = 0
    var feedbackCursor = 0
    /// The subscription being written, and its next packet in the plan; -1 before a peer's first.
    var subscription = -1
    var item = 0

    /// Discards the remaining work.
    mutating func end() {
        pendingPeers.removeAll()
        repeats.removeAll()
        plan.removeAll()
        phase = .idle
        (repeatCursor, peerCursor, feedbackCursor) = (0, 0, 0)
        (subscription, item) = (-1, 0)
    }
}
