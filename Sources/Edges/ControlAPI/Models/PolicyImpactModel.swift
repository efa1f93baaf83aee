import Rooms

/// The result of a dry run: the policy as it would be, and whom it would affect.
struct PolicyImpactModel: Encodable {
    struct Participant: Encodable {
        var sid: String
        var identity: String
        var leaves: Bool
        var changesEnd: Bool
        var endsAt: Int64?
        var endedTracks: [String]
        var cappedTracks: [String]
        var endedSubscriptions: [String]
        var newSubscriptions: [String]
        var endedRecordings: [String]
        var newRecordings: [String]
        var changesBandwidth: Bool
    }

    var policy: PolicyModel
    var participants: [Participant]
    var participantsBeyondLimit: Int
    var publishersBeyondLimit: Int

    init(_ policy: RoomPolicy, _ impact: PolicyImpact) {
        self.policy = PolicyModel(policy)
        participants = impact.participants.map {
            Participant(
                sid: $0.sid, identity: $0.identity, leaves: $0.leaves, changesEnd: $0.changesEnd, endsAt: $0.endsAt,
                endedTracks: $0.endedTracks, cappedTracks: $0.cappedTracks,
                endedSubscriptions: $0.endedSubscriptions, newSubscriptions: $0.newSubscriptions,
                endedRecordings: $0.endedRecordings, newRecordings: $0.newRecordings,
                changesBandwidth: $0.changesBandwidth)
        }
        participantsBeyondLimit = impact.participantsBeyondLimit
        publishersBeyondLimit = impact.publishersBeyondLimit
    }
}

/// A named policy.
struct PresetModel: Encodable {
    var name: String
    var policy: PolicyModel
}
