public import AccessTokens

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
    public var addresses = PeerAddresses.range(first: 0x7f01_0001)
    public var roomPrefix = "load"
    public var isQuiet = false

    public init() {}
}
