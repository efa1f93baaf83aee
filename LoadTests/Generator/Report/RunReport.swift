/// The results of one run. Table, page and comparison are made from it.
public struct RunReport: Codable, Sendable {
    /// One second of the run.
    public struct Second: Codable, Sendable {
        /// Seconds since the measuring began.
        public var time: Double
        /// Cores that the server and the generator used.
        public var serverCores: Double
        public var generatorCores: Double
        public var residentBytes: Int
        /// Packets delivered to subscribers, and numbers that did not arrive.
        public var delivered: Double
        public var lost: Double
        /// Added delay in milliseconds.
        public var delayP50: Double
        public var delayP99: Double
        public var delayMax: Double
        /// CPU microseconds of one reference packet.
        public var reference: Double
    }

    public var scenario: Scenario
    public var server: String
    /// The name of the server in comparisons.
    public var label = ""
    public var driver: String
    public var date = ""
    public var machine = ""
    public var seconds = 0.0
    public var peers = 0
    public var failedJoins = 0
    /// SRTP profiles that connections negotiated.
    public var srtpProfiles: [String] = []
    /// How the peers behaved: when their timers fired, and whether they received runs of datagrams in one piece.
    public var timers = PeerTimers.shared.rawValue
    public var receiveOffload = true
    public var firstFailure: String?
    /// How often a peer has moved to another server, and the longest time without media of each: milliseconds; nil if no peer follows drains.
    public var moves: Int? = nil
    public var silenceP50: Double? = nil, silenceP95: Double? = nil, silenceMax: Double? = nil
    /// Each peer's, the shortest first.
    public var silences: [Double]? = nil

    // The key figure.
    /// CPU microseconds of the server for each RTP packet delivered to a subscriber, and the same in reference packets.
    public var cpuPerPacket: Double?
    public var referencePacketsPerPacket: Double?
    /// CPU microseconds of one reference packet: the median of the run.
    public var referencePacket = 0.0
    public var serverCores: Double?
    public var generatorCores = 0.0
    public var generatorPerPacket = 0.0
    public var deliveredPerSecond = 0.0
    public var deliveredMegabits = 0.0

    // Delay in milliseconds.
    public var delayP50 = 0.0
    public var delayP99 = 0.0
    public var delayP999 = 0.0
    public var delayMax = 0.0
    public var joinP50 = 0.0
    public var joinP95 = 0.0
    public var joinMax = 0.0
    public var firstFrameP50 = 0.0
    public var firstFrameP95 = 0.0
    public var firstFrameMax = 0.0

    // Memory in bytes.
    public var residentBefore = 0
    public var residentAfter = 0
    public var residentPerPeer: Double?

    // What subscribers found.
    public var counts = Counts()
    public var timeline: [Second] = []

    public init(scenario: Scenario, server: String, driver: String) {
        self.scenario = scenario
        self.server = server
        self.driver = driver
    }

    /// The counters of the measured time.
    public struct Counts: Codable, Sendable, Hashable {
        public var sent: UInt64 = 0, delivered: UInt64 = 0, verified: UInt64 = 0
        public var lost: UInt64 = 0, gaps: UInt64 = 0, recovered: UInt64 = 0, duplicates: UInt64 = 0
        public var reordered: UInt64 = 0, jumps: UInt64 = 0, pictureJumps: UInt64 = 0, skipped: UInt64 = 0
        public var corrupted: UInt64 = 0, unauthentic: UInt64 = 0, unexplained: UInt64 = 0, padding: UInt64 = 0
        public var linkDropped: UInt64 = 0, generatorDropped: UInt64 = 0, unsent: UInt64 = 0, lateFrames: UInt64 = 0
        public var nacks: UInt64 = 0, pictureLosses: UInt64 = 0
        public var resentByPublishers: UInt64 = 0, keyframeRequests: UInt64 = 0
        public var framesDecoded: UInt64 = 0, framesBroken: UInt64 = 0
        public var connected: UInt64 = 0, ended: UInt64 = 0

        public init() {}

        init(from old: Counters, to new: Counters) {
            sent = new.sent &- old.sent
            delivered = new.received &- old.received
            verified = new.verified &- old.verified
            lost = new.lost &- old.lost
            gaps = new.gaps &- old.gaps
            recovered = new.recovered &- old.recovered
            duplicates = new.duplicates &- old.duplicates
            reordered = new.reordered &- old.reordered
            jumps = new.jumps &- old.jumps
            pictureJumps = new.pictureJumps &- old.pictureJumps
            skipped = new.skipped &- old.skipped
            corrupted = new.corrupted &- old.corrupted
            unauthentic = new.unauthentic &- old.unauthentic
            unexplained = new.unexplained &- old.unexplained
            padding = new.padding &- old.padding
            linkDropped = new.linkDropped &- old.linkDropped
            generatorDropped = new.bufferDrops &- old.bufferDrops
            unsent = new.unsent &- old.unsent
            lateFrames = new.lateFrames &- old.lateFrames
            nacks = new.nacks &- old.nacks
            pictureLosses = new.pictureLosses &- old.pictureLosses
            resentByPublishers = new.resent &- old.resent
            keyframeRequests = new.keyframeRequests &- old.keyframeRequests
            framesDecoded = new.framesDecoded &- old.framesDecoded
            framesBroken = new.framesBroken &- old.framesBroken
            connected = new.connected
            ended = new.ended
        }
    }
}
