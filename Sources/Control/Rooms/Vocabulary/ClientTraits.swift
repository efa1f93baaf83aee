/// What a participant's client states about itself, for other clients; the server does not act on it.
public struct ClientTraits: Sendable, Hashable {
    /// The version of the protocol that clients use among themselves.
    public var peerProtocol = 0
    /// Numbers of capabilities in the client's protocol.
    public var capabilities: [Int] = []

    /// Nothing stated.
    public init() {}
}
