import MediaControl
import Primitives

/// A member on its way from one room to another, with what continues there: its connections and its tracks.
public struct MovingMember: Sendable {
    /// As it was in the room that it leaves, without subscriptions.
    var member: Member
    let tracks: [RoomTrack]
    /// Its connections cannot continue: the other room is on another worker, or its client could not be notified. It opens others, and publishes anew.
    public let losesConnections: Bool
    /// The connections that it had.
    let lostConnections: [String]
    /// Whether it published.
    let publishes: Bool
    /// The rules of the room that it leaves.
    let policy: RoomPolicy

    public var session: SessionID { member.session }
    /// Its info in the room that it leaves, without tracks.
    public var info: ParticipantInfo { member.info }
    /// The numbers that stay the same; the first room of the member made them.
    public var numbers: [UInt64] { member.connections.map(\.peer.rawValue) + tracks.map(\.id.rawValue) }

    /// Refuses a member that the rules of the new room do not admit.
    func check(_ state: RoomState) throws(RoomError) {
        let policy = state.policy
        guard policy.topology == .routed else { throw Self.cannotMove }
        guard info.encrypts || !policy.requiresEncryption else {
            throw RoomError(
                .encryptionRequired, "the room admits only participants that encrypt their media end to end")
        }
        let identity = info.identity
        guard policy.duplicateIdentity != .refuse || state.roster.session(identity: identity) == nil else {
            throw RoomError(.identityTaken, "a participant with this identity is in the room")
        }
        try state.checkCapacity(
            identity: identity, profile: info.profile, hidden: info.permissions.hidden)
        if let most = policy.maxPublishers, publishes, state.routing.publisherCount >= most {
            throw RoomError(.limitExceeded, "publisher limit of the room reached")
        }
    }

    static let cannotMove = RoomError(
        .notRouted, "a peer-to-peer room has no media on the server that could move")
}
