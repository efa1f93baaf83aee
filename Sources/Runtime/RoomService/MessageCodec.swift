import MediaControl
public import Primitives
public import Rooms

/// How one protocol encodes messages on data channels.
public struct MessageCodec: Sendable {
    /// Decodes data from the channel with this label; nil if it is malformed.
    public var decode: @Sendable (_ label: String, _ payload: DataPayload) -> RoomMessage?
    /// Encodes a message for the receivers on a channel; nil if the protocol has no form for it.
    public var encode: @Sendable (RoomMessage) -> DataPayload?

    /// A codec with these two directions.
    public init(
        decode: @escaping @Sendable (String, DataPayload) -> RoomMessage?,
        encode: @escaping @Sendable (RoomMessage) -> DataPayload?
    ) {
        self.decode = decode
        self.encode = encode
    }
}

/// The codecs of all protocols.
struct MessageCodecs: Sendable {
    private let codecs: [String: MessageCodec]

    /// By the name of their protocol.
    init(_ codecs: [String: MessageCodec]) { self.codecs = codecs }

    /// Decodes a member's message; nil if it is malformed.
    func decode(_ payload: DataPayload, label: String, _ protocol: DataProtocol) -> RoomMessage? {
        codecs[`protocol`.name]?.decode(label, payload)
    }

    /// Encodes a message once for each protocol among its receivers, who share the bytes.
    func commands(for message: RoomMessage, to receivers: [MessageReceiver], from source: PeerID?) -> [MediaCommand] {
        var deliveries: [String: DataDelivery] = [:], order: [String] = []
        for receiver in receivers {
            let name = receiver.protocol.name
            if deliveries[name] == nil {
                guard let payload = codecs[name]?.encode(message) else { continue }
                deliveries[name] = DataDelivery(
                    payload: payload, receivers: [], source: message.isReliable ? source : nil)
                order.append(name)
            }
            deliveries[name]?.receivers.append(DataReceiver(peer: receiver.peer, label: receiver.label))
        }
        return order.compactMap { deliveries[$0] }.map { .sendData($0) }
    }
}
