import CLiveKitProtocol
import EdgeSupport
import Primitives
import RoomService

@testable import LiveKit

/// A frame of LiveKit's signalling, and the same bytes as a join request, as a data packet and as a JSON body of the server API.
func fuzzLiveKit(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    if case .subscription(let tracks, _)? = ClientSignal(frame: bytes) {
        precondition(Set(tracks).count == tracks.count, "a track is named once")
    }
    _ = JoinParameters(single: String(decoding: bytes, as: UTF8.self))
    if let inflated = Gzip.inflate(bytes, atMost: 4_096) {
        precondition(inflated.count <= 4_096, "what is inflated is bounded")
    }
    _ = JoinParameters(dual: ["attributes": String(decoding: bytes, as: UTF8.self)])
    for label in ["_reliable", "_lossy", "_data_track"] {
        guard let message = DataPackets.codec.decode(label, DataPayload(isText: false, bytes: bytes)) else { continue }
        let sent = DataPackets.codec.encode(message)
        precondition(sent.map { DataPackets.codec.decode(label, $0) != nil } ?? true, "what is sent can be read")
    }
    guard let value = try? JSONCoding.decode(JSONValue.self, from: bytes), let written = messageJSON(value) else {
        return
    }
    let reread = messageJSON(written)
    precondition(reread == written, "a message that was written as JSON is read as the same")
}

/// A message with the members of `value`, as JSON again.
private func messageJSON(_ value: JSONValue) -> JSONValue? {
    let arena = MessageArena()
    let message = arena.make(livekit__update_participant_request__init)
    guard (try? MessageJSON.fill(message, from: value, arena)) != nil else { return nil }
    return withExtendedLifetime(arena) { MessageJSON.value(of: message) }
}

extension Seeds {
    /// What clients send, and the beginnings of what they could.
    static func liveKit() throws -> [[UInt8]] {
        let arena = MessageArena()
        let offer = arena.make(livekit__signal_request__init) { request in
            request.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_OFFER
            request.offer = arena.make(livekit__session_description__init) { $0.sdp = arena.text("v=0") }
        }
        let subscription = arena.make(livekit__signal_request__init) { request in
            request.message_case = LIVEKIT__SIGNAL_REQUEST__MESSAGE_SUBSCRIPTION
            request.subscription = arena.make(livekit__update_subscription__init) { update in
                update.n_track_sids = 2
                update.track_sids = arena.list([arena.text("TR_1"), arena.text("TR_1")])
            }
        }
        let data = arena.make(livekit__data_packet__init) { packet in
            packet.value_case = LIVEKIT__DATA_PACKET__VALUE_USER
            packet.user = arena.make(livekit__user_packet__init) { $0.payload = arena.bytes([1, 2, 3]) }
            packet.n_destination_identities = 1
            packet.destination_identities = arena.list([arena.text("bob")])
        }
        return [
            arena.packed(offer), arena.packed(subscription), arena.packed(data),
            Array(#"{"room":"r","identity":"ada","permission":{"canPublish":true},"attributes":{"a":"b"}}"#.utf8),
            Array("CAESAA==".utf8),
            // A packet of a data track.
            [0x18, 0, 0, 7, 0, 1, 0, 2, 0, 0, 0, 3, 9],
        ]
    }
}
