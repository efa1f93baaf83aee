import AccessTokens
import MediaControl
import Primitives
import SDP
import Testing

@testable import Rooms

@Suite("A room's state: tables that agree with each other")
struct StateTests {
    private static func member(_ name: String, promised: Int) -> Member {
        let options = MemberOptions(
            autoSubscribe: true, audioOnly: false, hasRoster: true, wantsSpeakers: false, receivingConnection: nil,
            grantedBandwidth: BandwidthProfile(), bandwidth: BandwidthProfile(), isSignalled: true,
            wantsMessages: true, dataProtocol: .martlet, follow: nil)
        let info = ParticipantInfo(
            sid: "PA_\(name)", identity: name, name: "", metadata: "", profile: .full, permissions: Permissions(),
            joinedAt: 0)
        return Member(
            session: SessionID("SE_\(name)"), apiKey: "k", granted: Permissions(), tokenExpiry: .distantFuture,
            joined: .zero, info: info, options: options, promisedConnections: promised)
    }

    private static func connection(_ id: String, peer: UInt64) -> Connection {
        let room = RoomBench().room
        let transport = LocalTransport(ICECredentials(ufrag: "u", password: "p"), room.state.context)
        return Connection(
            id: id, peer: PeerID(peer), group: PeerID(peer), feedbackSSRC: 1,
            negotiation: .init(sessionID: 1, transport: transport),
            ice: ICECredentials(ufrag: "u", password: "p"))
    }

    @Test("A roster reserves what was promised, or what there is where that is more, and gives all of it back")
    func reservations() {
        var roster = Roster()
        let ada = SessionID("SE_ada")
        roster.insert(Self.member("ada", promised: 2))
        #expect(roster.reservedConnections == 2)
        for peer in 1...3 as ClosedRange<UInt64> { roster.store(Self.connection("\(peer)", peer: peer), of: ada) }
        #expect(roster.reservedConnections == 3 && roster.connectionCount == 3)
        roster.store(Self.connection("3", peer: 3), of: ada)
        #expect(roster.reservedConnections == 3, "stored again, not added")
        roster.removeConnection("1", of: ada)
        roster.removeConnection("2", of: ada)
        #expect(roster.reservedConnections == 2 && roster.owner(of: PeerID(1)) == nil)
        #expect(roster.owner(of: PeerID(3))?.connection == "3")
        for peer in 4...6 as ClosedRange<UInt64> { roster.store(Self.connection("\(peer)", peer: peer), of: ada) }
        roster.remove(ada)
        #expect(roster.reservedConnections == 0 && roster.connectionCount == 0 && roster.isEmpty)
        #expect(roster.session(identity: "ada") == nil && roster.session(sid: "PA_ada") == nil)
    }

    private static func track(_ number: UInt64, of publisher: String) -> RoomTrack {
        let info = TrackInfo(
            sid: "TR_\(number)", participant: "PA_\(publisher)", identity: publisher, name: "", kind: .video,
            source: .camera, mid: "0")
        let description = TrackDescription(
            id: TrackID(number), peer: PeerID(1), kind: .video, source: .camera, mid: "0", formats: [], encodings: [],
            extensions: HeaderExtensionIDs([]), feedback: [], maximumBitrate: nil)
        return RoomTrack(
            id: TrackID(number), publisher: SessionID(publisher), connection: "pub", info: info,
            description: description, formats: [])
    }

    private static func subscription(_ number: UInt64, of member: String, to track: UInt64?) -> RoomSubscription {
        RoomSubscription(
            id: SubscriptionID(number), sid: "SU_\(number)", member: SessionID(member), kind: .video,
            ssrc: UInt32(number), rtxSSRC: UInt32(number + 100), track: track.map { TrackID($0) }, slot: nil)
    }

    @Test(
        "Routing knows each track's subscribers and each member's tracks and subscriptions, through switches and ends")
    func routing() {
        var routing = Routing()
        routing.insert(Self.track(1, of: "ada"))
        routing.insert(Self.track(2, of: "ada"))
        routing.insert(Self.subscription(11, of: "bob", to: 1))
        routing.insert(Self.subscription(12, of: "bob", to: nil))
        #expect(routing.tracks(of: SessionID("ada")) == [TrackID(1), TrackID(2)] && routing.publisherCount == 1)
        #expect(routing.subscribers(of: TrackID(1)) == [SubscriptionID(11)])
        routing.switch(SubscriptionID(12), to: TrackID(1))
        #expect(routing.subscribers(of: TrackID(1)) == [SubscriptionID(11), SubscriptionID(12)])
        routing.switch(SubscriptionID(11), to: TrackID(2))
        #expect(routing.subscribers(of: TrackID(1)) == [SubscriptionID(12)])
        #expect(routing.subscription(of: SessionID("bob"), to: TrackID(2))?.sid == "SU_11")
        #expect(routing.uses(111, member: SessionID("bob")) && !routing.uses(113, member: SessionID("bob")))
        routing.remove(SubscriptionID(12))
        #expect(routing.subscribers(of: TrackID(1)).isEmpty && routing.subscriptionCount(of: SessionID("bob")) == 1)
        routing.switch(SubscriptionID(11), to: nil)
        routing.remove(TrackID(1))
        routing.remove(TrackID(2))
        #expect(!routing.publishes(SessionID("ada")) && routing.track(sid: "TR_2") == nil && routing.trackCount == 0)
    }

    @Test(
        "Waiting tracks: oldest first, a count is news once, and nothing is left of a track or a member that was removed"
    )
    func waiting() {
        var waiting = WaitingTracks()
        let bob = SessionID("bob")
        for number in [3, 1, 2] as [UInt64] { waiting.insert(TrackID(number), for: bob) }
        #expect(waiting.tracks(for: bob).map(\.rawValue) == [1, 2, 3] && waiting.consumeChanged() == [bob])
        let counts = (waiting.consumeCountChanges(), waiting.consumeCountChanges())
        #expect(counts.0 == [bob: 3] && counts.1.isEmpty)
        waiting.insert(TrackID(1), for: bob)
        #expect(waiting.isSettled, "it waited already")
        waiting.remove(TrackID(2))
        #expect(waiting.consumeChanged() == [bob] && waiting.consumeCountChanges() == [bob: 2])
        waiting.dequeue(TrackID(1), for: bob)
        #expect(waiting.isSettled && waiting.tracks(for: bob).map(\.rawValue) == [3])
        waiting.subscriptionEnded(of: bob)
        #expect(!waiting.isSettled)
        waiting.remove(bob)
        #expect(waiting.isSettled && waiting.tracks(for: bob).isEmpty)
        waiting.subscriptionEnded(of: bob)
        #expect(waiting.isSettled, "nobody waits")
    }
}
