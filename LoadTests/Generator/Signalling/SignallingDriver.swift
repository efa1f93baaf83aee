/// One member of a room as a scenario wants it.
public struct PeerSpec: Sendable {
    public var room: String
    public var identity: String
    /// What it sends: audio, and so many video layers (0: none, more than one: simulcast).
    public var sendsAudio: Bool
    public var videoLayers: Int
    public var videoCodec = VideoCodec.vp8
    /// Whether it plays what others send, and of what kinds.
    public var receives: Bool
    public var receivesVideo: Bool
    public var receivesAudio: Bool
    /// Who publishes in the room, for signalling that asks for each by name.
    public var publishers: [String]
    public var verifies: Bool
    public var decodes: Bool
    public var link: LinkSettings
    public var audioBurstNanoseconds: Int64 = 0

    /// Whether it sends anything.
    public var sends: Bool { sendsAudio || videoLayers > 0 }
}

/// A member that is in its room.
protocol JoinedPeer: Sendable {
    /// Begins to play what the room's publishers send; called once all of them are there, and only for those who receive.
    /// Nothing to do where the server subscribes by itself.
    func startReceiving() async throws(LoadError)
    /// Leaves as a well-behaved client does.
    func leave() async
    /// Calls `moved` when the server says that it is about to end.
    func onDrain(_ moved: @escaping @Sendable () -> Void) async
}

/// How peers join rooms of one kind of server. A new server is one file with one of these.
///
/// A driver speaks the server's signalling and turns descriptions into connections through the hub; the media is the same for
/// all. It must put the peer's receiving and sending into as many connections as the server's own clients would.
protocol SignallingDriver: Sendable {
    /// Brings one member in; returns when its connections are agreed on (not: up).
    func join(_ peer: PeerSpec, hub: ConnectionHub) async throws(LoadError) -> any JoinedPeer
    /// Makes a room ready where the server wants that done once.
    func prepare(room: String) async throws(LoadError)
}

extension JoinedPeer {
    func startReceiving() async throws(LoadError) {}
    func onDrain(_ moved: @escaping @Sendable () -> Void) async {}
}

extension SignallingDriver {
    func prepare(room: String) async throws(LoadError) {}
}
