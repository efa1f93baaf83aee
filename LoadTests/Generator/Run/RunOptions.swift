public import AccessTokens

/// When peers' timers fire.
public enum PeerTimers: String, Sendable {
    /// All peers share a time grid, of one millisecond for frames and four for reports: the generator costs less, and so does a server that is woken less
    /// often.
    case shared
    /// Each peer has its own times, within 100 us, like peers on separate machines.
    case independent

    /// Length of a slot of the timing wheel.
    var slotNanoseconds: Int64 { self == .shared ? 1_000_000 : 100_000 }
    /// Reports and feedback come in steps of this length.
    var reportStep: Int64 { self == .shared ? 4_000_000 : 1 }
}

/// How a run reaches its server and what it writes.
public struct RunOptions: Sendable {
    /// Where the server listens, for example "http://127.0.0.1:7880".
    public var url = "http://127.0.0.1:7880"
    /// Which signalling: "martlet", "whip" or "janus".
    public var driver = "martlet"
    /// The name of the server in comparisons; the driver's name if empty.
    public var label = ""
    public var token: String?
    public var key = APIKey(name: "devkey", secret: "devsecret-devsecret-devsecret-00")
    /// The server's processes; empty: those that listen on the URL's port.
    public var serverProcesses: [Int32] = []
    public var threads = 1
    public var timers = PeerTimers.shared
    /// Whether peers receive runs of datagrams in one piece (UDP_GRO), as a network card with receive offload delivers them.
    public var receiveOffload = true
    public var addresses = PeerAddresses.range(first: 0x7f01_0001)
    public var roomPrefix = "load"
    public var isQuiet = false
    /// Peers whose server announces that it is about to end join again, wherever the URL leads then.
    public var followsDrains = false

    public init() {}
}
