import EdgeSupport
import MediaControl
import Primitives
import RoomService
import Rooms

/// A room with its policy and everybody in it.
struct RoomDetailModel: Encodable {
    var room: RoomModel
    var policy: PolicyModel
    var participants: [ParticipantDetailModel]

    init(_ detail: RoomDetail) {
        room = RoomModel(detail.info)
        policy = PolicyModel(detail.policy)
        participants = detail.participants.map { ParticipantDetailModel($0) }
    }
}

/// A participant with its connections and subscriptions.
struct ParticipantDetailModel: Encodable {
    var participant: ParticipantModel
    var connections: [ConnectionModel]
    var subscriptions: [SubscriptionModel]
    var bandwidth: BandwidthModel
    var subscribeRules: [SubscribeRuleModel]?
    var client: String?

    init(_ detail: ParticipantDetail) {
        participant = ParticipantModel(detail.info)
        connections = detail.connections.map { ConnectionModel(id: $0.id, state: $0.state.rawValue) }
        subscriptions = detail.subscriptions.map { SubscriptionModel($0) }
        bandwidth = BandwidthModel(detail.bandwidth)
        subscribeRules = detail.subscribeRules?.map { SubscribeRuleModel($0) }
        client = detail.info.client
    }

    struct ConnectionModel: Encodable {
        var id: String
        var state: String
    }

    private enum CodingKeys: String, CodingKey { case connections, subscriptions, bandwidth, subscribeRules, client }

    /// Encodes the participant's own members, and further ones next to them.
    func encode(to encoder: any Encoder) throws {
        try participant.encode(to: encoder)
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(connections, forKey: .connections)
        try fields.encode(subscriptions, forKey: .subscriptions)
        try fields.encode(bandwidth, forKey: .bandwidth)
        try fields.encodeIfPresent(subscribeRules, forKey: .subscribeRules)
        try fields.encodeIfPresent(client, forKey: .client)
    }
}

/// Which tokens are refused after a room was deleted or a participant removed.
struct ClosureModel: Encodable {
    var closedForSeconds: Int64
    /// Seconds since 1970.
    var acceptsTokensIssuedAfter: Int64

    init(_ closure: TokenClosure) {
        closedForSeconds = Int64(closure.duration.seconds)
        acceptsTokensIssuedAfter = closure.issuedAfter
    }
}
