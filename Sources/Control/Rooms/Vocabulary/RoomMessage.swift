/// How a member's messages are written on its data channels. Rooms knows its name and its channels only; whoever speaks it encodes and decodes
/// (`RoomHost.MessageCodec`).
public struct DataProtocol: Sendable, Hashable {
    public var name: String
    /// Labels of the channels for reliable and for lossy messages.
    public var reliableLabel: String
    public var lossyLabel: String
    /// Of the channel for frames of data tracks; nil: the protocol has none.
    public var dataTrackLabel: String?
    /// Whether a member without a channel receives messages over its signalling connection.
    public var signallingCarriesMessages: Bool

    /// A protocol with these channels.
    public init(
        name: String, reliableLabel: String, lossyLabel: String, dataTrackLabel: String? = nil,
        signallingCarriesMessages: Bool
    ) {
        self.name = name
        self.reliableLabel = reliableLabel
        self.lossyLabel = lossyLabel
        self.dataTrackLabel = dataTrackLabel
        self.signallingCarriesMessages = signallingCarriesMessages
    }

    /// Where messages of a kind are sent: the channel for them, or another one, which is better than none.
    func labels(for channel: RoomMessage.Channel) -> [String] {
        switch channel {
        case .reliable: [reliableLabel]
        case .lossy: [lossyLabel, reliableLabel]
        case .dataTracks: dataTrackLabel.map { [$0] } ?? []
        }
    }

    /// Protocol.md section 11.
    public static let martlet = DataProtocol(
        name: "martlet.v1", reliableLabel: "reliable", lossyLabel: "lossy", signallingCarriesMessages: true)
}

/// A message between members, or from the API to members.
public struct RoomMessage: Sendable, Hashable {
    /// What is in it.
    public enum Content: Sendable, Hashable {
        case text(String)
        case binary([UInt8])
        /// What only one protocol understands, as it is on its wire; only members that speak the protocol with this name receive it.
        case foreign(String, [UInt8])
    }

    /// A message as it is on one protocol's wire.
    public struct WireForm: Sendable, Hashable {
        public var `protocol`: String
        public var bytes: [UInt8]

        /// `bytes` of the protocol with this name.
        public init(_ `protocol`: String, _ bytes: [UInt8]) {
            self.protocol = `protocol`
            self.bytes = bytes
        }
    }

    /// What it is about; chosen by the application.
    public var topic: String
    public var content: Content
    /// Lossy ones may be dropped on the way, and are better late than blocked by others.
    public var isReliable: Bool
    /// Identities or sids of its receivers; nil: everybody else in the room.
    public var to: [String]?
    /// sid and identity of the sender; nil: the API. The room sets them.
    public var participant: String?
    public var identity: String?

    /// As its sender wrote it, with what only its protocol has: for members that speak the same one.
    public var original: WireForm?
    /// What it replies, where it replies to a call: the application's server may be who waits for it.
    public var answer: CallAnswer?

    /// Its number among its sender's messages, where its client counts them: one that is not above the last was sent again after a resume.
    public var sequence: UInt32?
    /// By which the application's server marks a message that it may send again; up to 64 bytes count.
    public var nonce: [UInt8] = []
    /// It is a frame of a data track: the number that it carries, its publisher's before the room has sent it to those who subscribe, the room's from then on.
    public var dataTrack: UInt16?

    /// A message that nobody has sent yet.
    public init(topic: String, content: Content, isReliable: Bool = true, to: [String]? = nil) {
        self.topic = topic
        self.content = content
        self.isReliable = isReliable
        self.to = to
    }

    /// The kinds of channels.
    enum Channel: Sendable, Hashable { case reliable, lossy, dataTracks }

    var channel: Channel { dataTrack != nil ? .dataTracks : isReliable ? .reliable : .lossy }

    /// Bytes of its content.
    public var byteCount: Int {
        switch content {
        case .text(let text): text.utf8.count
        case .binary(let bytes), .foreign(_, let bytes): bytes.count
        }
    }
}

extension RoomMessage {
    /// Refuses one beyond the bounds.
    func check(_ limits: RoomLimits) throws(RoomError) {
        guard topic.utf8.count <= limits.topicBytes else {
            throw RoomError(.tooLarge, "the topic is longer than \(limits.topicBytes) bytes")
        }
        guard byteCount <= limits.messageBytes else {
            throw RoomError(.tooLarge, "the message is longer than \(limits.messageBytes) bytes")
        }
        guard (to?.count ?? 0) <= limits.messageReceivers else {
            throw RoomError(.tooLarge, "the message names more than \(limits.messageReceivers) receivers")
        }
    }
}
