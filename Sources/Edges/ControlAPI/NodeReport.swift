/// What the process reports about itself.
public struct NodeReport: Encodable, Sendable {
    /// Name and version.
    public var server: String
    /// Since the start.
    public var uptimeSeconds: Int64
    /// Whether the server drains: it creates no new rooms, and still admits joins to existing ones.
    public var isDraining: Bool
    /// Rooms now.
    public var rooms: Int
    /// Participants now.
    public var participants: Int
    /// Peer connections now.
    public var connections: Int
    /// One element per media worker.
    public var workers: [Worker]

    /// One media worker.
    public struct Worker: Encodable, Sendable {
        /// From 0.
        public var index: Int
        /// The UDP port of all its peers.
        public var port: Int
        /// Rooms now.
        public var rooms: Int
        /// Peers now.
        public var peers: Int
        /// Datagrams since the start.
        public var packetsReceived: UInt64
        /// Datagrams since the start.
        public var packetsSent: UInt64

        /// Its thread does not respond: all other values are from before.
        public var hangs: Bool

        /// A worker's report.
        public init(
            index: Int, port: Int, rooms: Int, peers: Int, packetsReceived: UInt64, packetsSent: UInt64,
            hangs: Bool = false
        ) {
            self.hangs = hangs
            self.index = index
            self.port = port
            self.rooms = rooms
            self.peers = peers
            self.packetsReceived = packetsReceived
            self.packetsSent = packetsSent
        }
    }

    /// A report of these parts.
    public init(
        server: String, uptimeSeconds: Int64, isDraining: Bool, rooms: Int, participants: Int, connections: Int,
        workers: [Worker]
    ) {
        self.server = server
        self.uptimeSeconds = uptimeSeconds
        self.isDraining = isDraining
        self.rooms = rooms
        self.participants = participants
        self.connections = connections
        self.workers = workers
    }
}
