/// What a participant's client says about itself, for other clients; the server acts on none of it.
public struct ClientTraits: Sendable, Hashable {
    /// The level of the protocol that clients speak among themselves.
    public var peerProtocol = 0
    /// Numbers of capabilities in the client's protocol.
    public var capabilities: [Int] = []

    /// Nothing said.
    public init() {}
}
