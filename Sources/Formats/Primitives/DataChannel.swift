/// How persistently a data channel tries to deliver a message (RFC 8831 section 6.1).
public enum DataReliability: Sendable, Hashable {
    case reliable
    /// At most this many retransmissions.
    case retransmissions(Int)
    /// No transmission after this time.
    case lifetime(TimeSpan)
}

/// The properties of a data channel, as its opener chooses them (RFC 8832 section 5.1).
public struct DataChannelTerms: Sendable, Hashable {
    /// Maximum length of the label and of the protocol's name, in bytes.
    public static let longestName = 256

    /// Identifies the channel to the application.
    public var label: String
    /// The name of its subprotocol; usually empty.
    public var subprotocol: String
    /// Whether messages arrive in the order in which they were sent.
    public var isOrdered: Bool
    public var reliability: DataReliability

    public init(
        label: String, subprotocol: String = "", isOrdered: Bool = true, reliability: DataReliability = .reliable
    ) {
        self.label = label
        self.subprotocol = subprotocol
        self.isOrdered = isOrdered
        self.reliability = reliability
    }
}

/// The content of one message on a data channel; copies share their bytes.
public struct DataPayload: Sendable, Hashable {
    /// Whether the bytes are text in UTF-8, which a browser passes to the page as a string.
    public var isText: Bool
    public var bytes: [UInt8]

    public init(isText: Bool, bytes: [UInt8]) {
        self.isText = isText
        self.bytes = bytes
    }

    /// Its cost in queues, in bytes: more than its content, so that empty messages are not free.
    public var cost: Int { bytes.count + 64 }

    /// A text message.
    public init(text: String) { self.init(isText: true, bytes: Array(text.utf8)) }
}

/// Why a data channel was closed. `rawValue` is the stable name in events and logs.
public enum DataChannelEnd: String, Sendable, Hashable, CaseIterable {
    /// The peer closed it.
    case closedByPeer
    /// The server closed it.
    case closed
    /// The peer accepts reliable messages more slowly than they arrive, and its queue is full.
    case receiverTooSlow
    /// The SCTP association ended, or began again.
    case associationEnded
}
