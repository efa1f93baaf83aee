import MediaControl
public import Primitives
public import Rooms

/// How one protocol writes messages on data channels.
public struct MessageCodec: Sendable {
    /// The message in what arrived on the channel with this label; nil when it is malformed.
    public var decode: @Sendable (_ label: String, _ payload: DataPayload) -> RoomMessage?
    /// The message as the receivers on a channel get it; nil when the protocol has no form for it.
    public var encode: @Sendable (RoomMessage) -> DataPayload?

    /// A protocol's two directions.
    public init(
        decode: @escaping @Sendable (String, DataPayload) -> RoomMessage?,
        encode: @escaping @Sendable (RoomMessage) -> DataPayload?
    ) {
        self.decode = decode
        self.encode = encode
    }
}

extension RoomService {
    /// A message arrived on a member's data channel: decoded by its protocol, decided by the room. A refusal becomes an event for its sender.
    func receive(_ payload: DataPayload, label: String, from peer: PeerID, _ hosted: HostedRoom) async {
        guard let sender = hosted.room.messageSender(peer) else { return }
        let message = codecs[sender.protocol.name]?.decode(label, payload)
        totals.messagesReceived += 1
        await step(hosted) { room, turn in
            room.touch(sender.session, turn: &turn)
            do throws(RoomError) {
                guard let message else {
                    throw RoomError(.invalidRequest, "the message is not of the form that Protocol.md describes")
                }
                try room.send(message, from: sender.session, over: peer, turn: &turn)
            } catch {
                room.refuseMessage(self.counted(error), topic: message?.topic, from: sender.session, turn: &turn)
            }
            // Refused or not: the next one may come.
            room.release(payload.cost, of: peer, turn: &turn)
        }
    }

    /// Sends a message of the API into a room.
    public func send(_ message: RoomMessage, toRoom name: String) async throws(RoomError) {
        try await step(try hosted(named: name)) { (room, turn) throws(RoomError) in
            try room.sendFromServer(message, turn: &turn)
        }
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
