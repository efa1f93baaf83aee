/// How a member's messages are encoded on its data channels. Rooms knows only the name and the channels; `RoomHost.MessageCodec` encodes and
/// decodes.
public struct DataProtocol: Sendable, Hashable {
    public var name: String
    /// Labels of the channels for reliable and for lossy messages.
    public var reliableLabel: String
    public var lossyLabel: String
    /// The label of the channel for frames of data tracks; nil: the protocol has none.
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

    /// The channel for messages of a kind; if there is none, another channel, which is better than none.
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
    /// The content.
    public enum Content: Sendable, Hashable {
        case text(String)
        case binary([UInt8])
        /// Content that only one protocol understands, as it is on its wire; only members that use the protocol with this name receive it.
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

    /// The topic; chosen by the application.
    public var topic: String
    public var content: Content
    /// Lossy messages may be dropped on the way, and never wait for others.
    public var isReliable: Bool
    /// Identities or sids of its receivers; nil: everybody else in the room.
    public var to: [String]?
    /// sid and identity of the sender; nil: the API. The room sets them.
    public var participant: String?
    public var identity: String?

    /// As its sender encoded it, with what only its protocol has: for members that use the same protocol.
    public var original: WireForm?
    /// The reply in it, if it replies to a call: the application's server may be waiting for it.
    public var answer: CallAnswer?

    /// Its number among its sender's messages, if its client counts them: a number that is not above the last was sent again after a resume.
    public var sequence: UInt32?
    /// The application's server sets this mark on a message that it may send again; up to 64 bytes count.
    public var nonce: [UInt8] = []
    /// For a frame of a data track: the track's number in it. Before the room sends the frame to subscribers this is the publisher's, afterwards the room's.
    public var dataTrack: UInt16?

    /// A message that has not been sent yet.
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
    /// Refuses a message beyond the limits.
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
