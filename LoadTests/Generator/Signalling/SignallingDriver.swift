/// One member of a room, as a scenario defines it.
public struct PeerSpec: Sendable {
    public var room: String
    public var identity: String
    /// What it sends: audio, and how many video layers (0: none, more than one: simulcast).
    public var sendsAudio: Bool
    public var videoLayers: Int
    public var videoCodec = VideoCodec.vp8
    /// Whether it plays what others send, and of what kinds.
    public var receives: Bool
    public var receivesVideo: Bool
    public var receivesAudio: Bool
    /// The publishers in the room, for signalling that requests each by name.
    public var publishers: [String]
    public var verifies: Bool
    public var decodes: Bool
    public var link: LinkSettings
    public var audioBurstNanoseconds: Int64 = 0

    /// Whether it sends anything.
    public var sends: Bool { sendsAudio || videoLayers > 0 }
}

/// A member that has joined its room.
protocol JoinedPeer: Sendable {
    /// Begins to play what the room's publishers send; called once all of them have joined, and only for members that receive.
    /// Does nothing if the server subscribes by itself.
    func startReceiving() async throws(LoadError)
    /// Leaves as a well-behaved client does.
    func leave() async
    /// Calls `moved` when the server announces that it is about to end.
    func onDrain(_ moved: @escaping @Sendable () -> Void) async
}

/// How peers join rooms of one kind of server. A new server is one file with one of these.
///
/// A driver implements the server's signalling and turns descriptions into connections through the hub; the media is the same for
/// all. It must put the peer's receiving and sending into as many connections as the server's own clients would.
protocol SignallingDriver: Sendable {
    /// Lets one member join; returns when its connections are negotiated, not yet up.
    func join(_ peer: PeerSpec, hub: ConnectionHub) async throws(LoadError) -> any JoinedPeer
    /// Prepares a room, if the server requires that once.
    func prepare(room: String) async throws(LoadError)
}

extension JoinedPeer {
    func startReceiving() async throws(LoadError) {}
    func onDrain(_ moved: @escaping @Sendable () -> Void) async {}
}

extension SignallingDriver {
    func prepare(room: String) async throws(LoadError) {}
}
