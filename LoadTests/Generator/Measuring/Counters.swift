/// What one media thread has counted. Plain numbers that only increase; the sampler computes differences.
public struct Counters: Sendable {
    // At publishers.
    /// RTP packets sent, without retransmissions, and their bytes.
    public var sent: UInt64 = 0, sentBytes: UInt64 = 0
    /// Retransmissions and keyframes that the server requested, and feedback that it sent.
    public var resent: UInt64 = 0, keyframeRequests: UInt64 = 0, feedbackReceived: UInt64 = 0
    /// Frames sent more than 5 ms late: the generator itself is overloaded.
    public var lateFrames: UInt64 = 0

    // At subscribers.
    /// Media packets received, each once, and their bytes on the wire.
    public var received: UInt64 = 0, receivedBytes: UInt64 = 0
    /// Of them, those decrypted and compared with what was sent.
    public var verified: UInt64 = 0
    /// Packets that arrived again, after a later one, or through RTX; padding without media.
    public var duplicates: UInt64 = 0, reordered: UInt64 = 0, recovered: UInt64 = 0, padding: UInt64 = 0
    /// Numbers that never arrived, runs of them, and jumps too far to be loss.
    public var lost: UInt64 = 0, gaps: UInt64 = 0, jumps: UInt64 = 0
    /// Packets of the source that were omitted although the numbering continues.
    public var skipped: UInt64 = 0
    /// VP8 picture ids that are not consecutive although the packets are.
    public var pictureJumps: UInt64 = 0
    /// Payloads that are not what was sent, and packets that failed authentication.
    public var corrupted: UInt64 = 0, unauthentic: UInt64 = 0
    /// Packets that no stream or payload type explains, and ones dropped for any other reason.
    public var unexplained: UInt64 = 0
    /// Dropped on purpose by the scenario's link.
    public var linkDropped: UInt64 = 0
    /// NACKs and keyframe requests sent.
    public var nacks: UInt64 = 0, pictureLosses: UInt64 = 0
    /// Frames that were decoded, and frames that were broken.
    public var framesDecoded: UInt64 = 0, framesBroken: UInt64 = 0
    /// Datagrams in and out of all kinds, system calls that fetched them, datagrams lost in our own receive buffers.
    public var datagramsIn: UInt64 = 0, datagramsOut: UInt64 = 0, receiveRuns: UInt64 = 0, bufferDrops: UInt64 = 0
    /// Datagrams that the kernel did not accept from us.
    public var unsent: UInt64 = 0

    // Connections.
    public var connected: UInt64 = 0, ended: UInt64 = 0

    public init() {}
}

/// What a media thread publishes once per second.
public struct Snapshot: Sendable {
    public var counters = Counters()
    /// Nanoseconds from a publisher's send to a subscriber's kernel, since the last snapshot was taken.
    public var delay = Histogram()
    /// Nanoseconds from the start of a join to the connection, and to the first complete video frame (or audio packet).
    public var joinTimes = Histogram(), firstFrameTimes = Histogram()
    /// CPU time of the thread.
    public var threadTime: Int64 = 0
    /// Connections that are up.
    public var open = 0
    /// SRTP profiles that connections negotiated.
    public var srtpProfiles: Set<String> = []
    /// The longest time without media of each participant so far, in nanoseconds, if that is measured.
    public var silences: [Int64] = []
}
