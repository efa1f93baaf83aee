public import Primitives

/// A room in which everybody publishes and everybody watches everybody else, as it comes and goes.
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
    public init(in world: World, on node: Int = 0) {
        self.world = world
        room = world.openRoom(on: node)
    }

    /// All views of all members, in order.
    public var views: [View] { members.flatMap { $0.client.views } }

    /// Somebody comes, and watches what is there.
    public func join(_ settings: ClientSettings = .init()) -> Member {
        let member = Member(world.join(room, settings))
        for other in members { for track in other.publications { watch(track, by: member) } }
        members.append(member)
        return member
    }

    /// Somebody shows pictures; the others watch.
    @discardableResult public func publish(_ plan: VideoPlan, by member: Member) -> Publication {
        add(member.client.publish(plan), of: member)
    }

    /// Somebody speaks; the others listen.
    @discardableResult public func publish(_ plan: AudioPlan, by member: Member) -> Publication {
        add(member.client.publish(plan), of: member)
    }

    /// Somebody takes a track back; the others' sections go.
    public func unpublish(_ publication: Publication, by member: Member) {
        member.publications.removeAll { $0 === publication }
        member.client.unpublish(publication)
        drop(publication)
    }

    /// Somebody leaves: by signalling, or (`isKilled`) without a word.
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
