public import AccessTokens

/// When peers' timers fire.
public enum PeerTimers: String, Sendable {
    /// On a grid that all peers share, frames each millisecond and reports each four: the generator costs less, and so does a server that is woken less often.
    case shared
    /// Each peer's at its own time, within 100 us, as those of peers on machines of their own.
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
    /// What the server is called in comparisons; the driver's name when empty.
    public var label = ""
    public var token: String?
    public var key = APIKey(name: "devkey", secret: "devsecret-devsecret-devsecret-00")
    /// The server's processes; empty: who listens on the URL's port.
    public var serverProcesses: [Int32] = []
    public var threads = 1
    public var timers = PeerTimers.shared
    /// Whether peers receive runs of datagrams in one piece (UDP_GRO), as a network card with receive offload delivers them.
    public var receiveOffload = true
    public var addresses = PeerAddresses.range(first: 0x7f01_0001)
    public var roomPrefix = "load"
    public var isQuiet = false
    /// Peers whose server says that it is about to end join once more, where the URL leads them then.
    public var followsDrains = false

    public init() {}
}
