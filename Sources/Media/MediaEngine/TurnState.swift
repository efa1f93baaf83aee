import Primitives

/// Where the writing of a turn stands, so that it can go on after a flush.
struct TurnState {
    /// What is being written.
    enum Phase {
        /// Nothing: a new turn may begin.
        case idle
        case repeats, packets, feedback
    }

    var phase = Phase.idle
    /// Positions in the lists of repeats, of peers with packets, and of touched peers.
    var repeatCursor = 0
    var peerCursor = 0
    var feedbackCursor = 0
    /// The subscription being written, and its next packet in the plan; -1 before a peer's first.
    var subscription = -1
    var item = 0
}

/// A packet to be sent again in this turn.
struct RepeatRequest {
    var subscription: Int32
    /// Extended output number.
    var sequence: UInt32
}

/// What the packets of one turn to one receiver have in common.
struct Stamping {
    /// abs-send-time.
    let sendTime: UInt32
    let now: MonotonicTime
    let destination: SocketAddress
}

/// What one pass of writing has done; added to the engine's counters once.
struct SentTally {
    var packets = 0
    var bytes = 0
    /// Packets that were made as long as their neighbours.
    var padded = 0
}
