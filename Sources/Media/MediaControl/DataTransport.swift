public import Primitives

/// The data section of a peer's description (RFC 8841).
public struct DataTransport: Sendable, Hashable {
    /// `a=sctp-port` of the peer.
    public var port: UInt16
    /// Largest message that the peer accepts, in bytes: its `a=max-message-size`.
    public var longestMessage: Int

    public init(port: UInt16, longestMessage: Int) {
        self.port = port
        self.longestMessage = longestMessage
    }
}

/// Who receives a message, and on which of its channels.
public struct DataReceiver: Sendable, Hashable {
    public var peer: PeerID
    public var label: String

    public init(peer: PeerID, label: String) {
        self.peer = peer
        self.label = label
    }
}

/// One message for several peers, which share its bytes.
public struct DataDelivery: Sendable, Hashable {
    public var payload: DataPayload
    public var receivers: [DataReceiver]
    /// The peer that sent it and can be slowed down; nil for lossy messages, and for messages from other sources.
    public var source: PeerID?

    public init(payload: DataPayload, receivers: [DataReceiver], source: PeerID? = nil) {
        self.payload = payload
        self.receivers = receivers
        self.source = source
    }
}
