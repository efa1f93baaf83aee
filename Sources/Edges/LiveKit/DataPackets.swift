import CLiveKitProtocol
import Primitives
public import RoomService
public import Rooms

extension DataProtocol {
    /// LiveKit's SDKs: packets of protobuf on two channels. The client creates them on the connection on which it offers, the server on its own.
    public static let liveKit = DataProtocol(
        name: "livekit", reliableLabel: "_reliable", lossyLabel: "_lossy", dataTrackLabel: "_data_track",
        signallingCarriesMessages: false)
}

/// Messages as LiveKit's SDKs write them on data channels (`DataPacket`).
///
/// Data that an application publishes (`publishData`) is a message to members of any protocol. All other kinds (text and byte streams, RPC, chat,
/// transcription, encrypted packets, kinds that are not known here) reach only members that speak this protocol. Between these every packet is forwarded
/// unchanged, except for the sender, which the server sets.
public enum DataPackets {
    /// On data channels.
    public static let codec = MessageCodec(decode: decode, encode: encode)

    private static func decode(_ label: String, _ payload: DataPayload) -> RoomMessage? {
        guard label != DataProtocol.liveKit.dataTrackLabel else { return DataTrackPacket.decode(payload) }
        let isReliable = label == DataProtocol.liveKit.reliableLabel
        guard isReliable || label == DataProtocol.liveKit.lossyLabel, !payload.isText,
            let packet = UnpackedMessage(payload.bytes, livekit__data_packet__unpack)
        else { return nil }
        return packet.read { packet in
            var to = [String](texts: packet.destination_identities, packet.n_destination_identities)
            let sequence = isReliable && packet.sequence > 0 ? packet.sequence : nil
            if packet.value_case == LIVEKIT__DATA_PACKET__VALUE_USER, let user = packet.user?.pointee {
                // Older SDKs name the receivers here.
                if to.isEmpty { to = [String](texts: user.destination_identities, user.n_destination_identities) }
                if to.isEmpty { to = [String](texts: user.destination_sids, user.n_destination_sids) }
                var message = RoomMessage(
                    topic: user.optional_topic_case == LIVEKIT__USER_PACKET__OPTIONAL_TOPIC_TOPIC
                        ? String(user.topic) : "",
                    content: .binary([UInt8](user.payload)), isReliable: isReliable, to: to.isEmpty ? nil : to)
                message.original = RoomMessage.WireForm(DataProtocol.liveKit.name, payload.bytes)
                message.sequence = sequence
                return message
            }
            // Only the server announces speakers, and nothing here reads clients' metrics: nobody receives either.
            let isForNobody = [LIVEKIT__DATA_PACKET__VALUE_SPEAKER, LIVEKIT__DATA_PACKET__VALUE_METRICS].contains(
                packet.value_case)
            var message = RoomMessage(
                topic: "", content: .foreign(DataProtocol.liveKit.name, payload.bytes), isReliable: isReliable,
                to: isForNobody ? [] : to.isEmpty ? nil : to)
            message.answer = CallAnswer(packet, payload.bytes)
            message.sequence = sequence
            return message
        }
    }

    /// The caller that members see and answer when the application's server has called them: the SDKs ignore a call without one. Answers are matched by the
    /// call's number and the member, not by this.
    static let server = "server"

    /// A call of the application's server to a member.
    static func call(
        _ method: String, payload: String, number: String, to identity: String, within milliseconds: Int
    ) -> RoomMessage {
        let arena = MessageArena()
        let packet = arena.make(livekit__data_packet__init) { packet in
            packet.value_case = LIVEKIT__DATA_PACKET__VALUE_RPC_REQUEST
            packet.rpc_request = arena.make(livekit__rpc_request__init) { request in
                request.id = arena.text(number)
                request.method = arena.text(method)
                request.payload = arena.text(payload)
                request.response_timeout_ms = UInt32(clamping: milliseconds)
                request.version = 1
            }
        }
        return RoomMessage(
            topic: "", content: .foreign(DataProtocol.liveKit.name, arena.packed(packet)), to: [identity])
    }

    private static func encode(_ message: RoomMessage) -> DataPayload? {
        if let number = message.dataTrack { return DataTrackPacket.encode(message, number) }
        if let original = message.original, original.protocol == DataProtocol.liveKit.name {
            return restamp(original.bytes, message)
        }
        let payload: [UInt8]
        switch message.content {
        case .text(let text): payload = Array(text.utf8)
        case .binary(let bytes): payload = bytes
        case .foreign(DataProtocol.liveKit.name, let bytes): return restamp(bytes, message)
        case .foreign: return nil
        }
        let arena = MessageArena()
        let packet = arena.make(livekit__data_packet__init) { packet in
            packet.value_case = LIVEKIT__DATA_PACKET__VALUE_USER
            packet.user = arena.make(livekit__user_packet__init) { user in
                user.payload = arena.bytes(payload)
                // SDKs pass a topic that is present to the app, even an empty one.
                if !message.topic.isEmpty {
                    user.optional_topic_case = LIVEKIT__USER_PACKET__OPTIONAL_TOPIC_TOPIC
                    user.topic = arena.text(message.topic)
                }
                stamp(&user, message, arena)
            }
            stamp(&packet, message, arena)
        }
        return DataPayload(isText: false, bytes: arena.packed(packet))
    }

    /// Numbers of the members of `DataPacket` and `UserPacket` that the server sets, or looks for.
    private enum Member {
        static let kind: UInt64 = 1, user: UInt64 = 2, identity: UInt64 = 4, call: UInt64 = 10, sid: UInt64 = 17
        static let userSID: UInt64 = 1, userIdentity: UInt64 = 5
    }

    /// The packet with its true sender, which receivers trust, and otherwise unchanged; nil if no receiver could read it.
    private static func restamp(_ bytes: [UInt8], _ message: RoomMessage) -> DataPayload? {
        guard let fields = WireField.list(bytes[...]) else { return nil }
        let arena = MessageArena()
        let isCall = fields.contains { $0.number == Member.call }
        var stamped = arena.packed(
            arena.make(livekit__data_packet__init) { stamp(&$0, isCall: isCall, message, arena) })
        for field in fields {
            switch field.number {
            case Member.kind, Member.identity, Member.sid: break
            case Member.user:
                guard let content = field.content, let parts = WireField.list(bytes[content]) else { return nil }
                var user = arena.packed(arena.make(livekit__user_packet__init) { stamp(&$0, message, arena) })
                for part in parts where ![Member.userSID, Member.userIdentity].contains(part.number) {
                    user += bytes[part.range]
                }
                stamped += WireField.message(Member.user, user)
            default: stamped += bytes[field.range]
            }
        }
        guard UnpackedMessage(stamped, livekit__data_packet__unpack) != nil else { return nil }
        return DataPayload(isText: false, bytes: stamped)
    }

    /// Older SDKs look for the sender here.
    private static func stamp(_ user: inout Livekit__UserPacket, _ message: RoomMessage, _ arena: MessageArena) {
        user.participant_sid = arena.text(message.participant ?? "")
        user.participant_identity = arena.text(message.identity ?? "")
    }

    private static func stamp(
        _ packet: inout Livekit__DataPacket, isCall: Bool = false, _ message: RoomMessage, _ arena: MessageArena
    ) {
        packet.kind = message.isReliable ? LIVEKIT__DATA_PACKET__KIND__RELIABLE : LIVEKIT__DATA_PACKET__KIND__LOSSY
        packet.participant_sid = arena.text(message.participant ?? "")
        packet.participant_identity = arena.text(message.identity ?? (isCall ? server : ""))
    }
}

extension CallAnswer {
    /// Where the texts of a response are in its packet: numbers of fields, the outermost first.
    private enum Path {
        static let result: [UInt64] = [12, 2], errorMessage: [UInt64] = [12, 3, 2], errorData: [UInt64] = [12, 3, 3]
    }

    /// nil where the packet replies to no call. `bytes`: the packet on the wire, where texts do not end at a NUL as protobuf-c's do.
    init?(_ packet: Livekit__DataPacket, _ bytes: [UInt8]) {
        func text(_ path: [UInt64]) -> String { WireField.text(at: path, in: bytes) ?? "" }
        switch packet.value_case {
        case LIVEKIT__DATA_PACKET__VALUE_RPC_ACK:
            guard let ack = packet.rpc_ack?.pointee else { return nil }
            self.init(call: String(ack.request_id), .acknowledged)
        case LIVEKIT__DATA_PACKET__VALUE_RPC_RESPONSE:
            guard let response = packet.rpc_response?.pointee else { return nil }
            let number = String(response.request_id)
            if response.value_case == LIVEKIT__RPC_RESPONSE__VALUE_ERROR, let error = response.error?.pointee {
                let (message, data) = (text(Path.errorMessage), text(Path.errorData))
                self.init(call: number, .failed(code: Int(error.code), message: message, data: data))
            } else {
                let hasText = response.value_case == LIVEKIT__RPC_RESPONSE__VALUE_PAYLOAD
                self.init(call: number, .returned(hasText ? text(Path.result) : ""))
            }
        default: return nil
        }
    }
}
