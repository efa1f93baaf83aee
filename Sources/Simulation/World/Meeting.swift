public import Primitives

/// A room in which every participant publishes and subscribes to all others, as participants join and leave.
public final class Meeting {
    /// One participant.
    public final class Member {
        public let client: VirtualClient
        /// What it publishes now.
        public internal(set) var publications: [Publication] = []
        /// What it watches now, by track.
        public internal(set) var views: [TrackID: View] = [:]

        init(_ client: VirtualClient) { self.client = client }
    }

    public let world: World
    public let room: RoomID
    /// In order of joining.
    public private(set) var members: [Member] = []

    /// An empty room on a worker.
    public init(in world: World, on worker: Int = 0) {
        self.world = world
        room = world.openRoom(on: worker)
    }

    /// All views of all members, in order.
    public var views: [View] { members.flatMap { $0.client.views } }

    /// A participant joins and subscribes to all tracks.
    public func join(_ settings: ClientSettings = .init()) -> Member {
        let member = Member(world.join(room, settings))
        for other in members { for track in other.publications { watch(track, by: member) } }
        members.append(member)
        return member
    }

    /// A participant publishes video; the others subscribe.
    @discardableResult public func publish(_ plan: VideoPlan, by member: Member) -> Publication {
        add(member.client.publish(plan), of: member)
    }

    /// A participant publishes audio; the others subscribe.
    @discardableResult public func publish(_ plan: AudioPlan, by member: Member) -> Publication {
        add(member.client.publish(plan), of: member)
    }

    /// A participant unpublishes a track; the subscriptions of the others end.
    public func unpublish(_ publication: Publication, by member: Member) {
        member.publications.removeAll { $0 === publication }
        member.client.unpublish(publication)
        drop(publication)
    }

    /// A participant leaves: by signalling, or (`isKilled`) without it.
    public func leave(_ member: Member, isKilled: Bool = false) {
        members.removeAll { $0 === member }
        for publication in member.publications { drop(publication) }
        if isKilled { member.client.kill() } else { member.client.leave() }
    }

    private func add(_ publication: Publication, of member: Member) -> Publication {
        member.publications.append(publication)
        for other in members where other !== member { watch(publication, by: other) }
        return publication
    }

    private func watch(_ publication: Publication, by member: Member) {
        let view = member.client.subscribe(to: publication)
        // Losses make the estimate fall below what the room sends.
        view.allowThinning()
        member.views[publication.id] = view
    }

    private func drop(_ publication: Publication) {
        for member in members {
            if let view = member.views.removeValue(forKey: publication.id) { member.client.unsubscribe(view) }
        }
    }
}
