import AccessTokens
import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

@Suite("Data tracks")
struct DataTrackTests {
    private static let dialect = DataProtocol(
        name: "tracks", reliableLabel: "r", lossyLabel: "l", dataTrackLabel: "frames", signallingCarriesMessages: false)

    private var bench = RoomBench()

    /// A member with a channel for frames.
    private mutating func join(
        _ identity: String, all: Bool = false, _ change: (inout JoinRequest) -> Void = { _ in }
    ) throws -> SessionID {
        let session = try bench.join(identity) { request in
            request.dataProtocol = Self.dialect
            request.subscribesToDataTracks = all
            change(&request)
        }
        let sdp = ClientDescriptions(ufrag: "u\(session.rawValue.suffix(6))").dataOffer()
        try bench.step { (room, turn) throws(RoomError) in
            _ = try room.offer(session, connection: "pub", sdp: sdp, turn: &turn)
        }
        let peer = peer(session)
        bench.media(.dataChannelOpened(peer, DataChannelTerms(label: "frames")))
        return session
    }

    private func peer(_ session: SessionID) -> PeerID { bench.room.connections(of: session)[0].peer }

    private mutating func publish(_ handle: UInt16, _ name: String, _ session: SessionID) throws(RoomError) -> String {
        try bench.perform(.dataTrack(.publish(DataTrackInfo(handle: handle, name: name))), session)
        return bench.info(session)?.dataTracks.last?.sid ?? ""
    }

    private mutating func send(_ handle: UInt16, from session: SessionID) throws(RoomError) {
        var frame = RoomMessage(topic: "", content: .foreign("tracks", [1, 2, 3]), isReliable: false)
        frame.dataTrack = handle
        let peer = peer(session)
        try bench.step { (room, turn) throws(RoomError) in
            try room.send(frame, from: session, over: peer, turn: &turn)
        }
    }

    /// The last notice to a member of what it receives.
    private mutating func received(_ session: SessionID) -> [ReceivedDataTrack]? {
        bench.consumeEvents(session).compactMap { if case .dataTracksReceived(let all) = $0 { all } else { nil } }.last
    }

    private mutating func code(_ request: SessionRequest, _ session: SessionID) -> RoomError.Code? {
        do throws(RoomError) {
            try bench.perform(request, session)
            return nil
        } catch {
            return error.code
        }
    }

    @Test(
        "Everybody learns of a data track; its frames reach those who subscribe, under a number of the room's, on the channel for frames alone"
    )
    mutating func frames() throws {
        let ada = try join("ada"), bob = try join("bob"), carl = try join("carl"), dora = try bench.join("dora")
        let first = try publish(7, "pose", ada), second = try publish(7, "depth", bob)
        #expect(
            bench.consumeEvents(ada).contains {
                if case .dataTrackPublished(let one) = $0 { one.sid == first } else { false }
            })
        for session in [carl, dora] {
            let reported = bench.consumeEvents(session).contains {
                if case .participantUpdated(let info) = $0 { info.dataTracks.map(\.name) == ["pose"] } else { false }
            }
            #expect(reported)
        }
        try send(7, from: ada)
        #expect(bench.messages.isEmpty, "nobody subscribes")

        try bench.perform(.dataTrack(.setSubscriptions([.init(track: first, subscribes: true)])), carl)
        try bench.perform(.dataTrack(.setSubscriptions([.init(track: second, subscribes: true)])), carl)
        let all = try #require(received(carl))
        #expect(all.map(\.track) == [first, second] && Set(all.map(\.number)).count == 2)
        #expect(all.map(\.identity) == ["ada", "bob"])
        try send(7, from: ada)
        try send(7, from: bob)
        #expect(bench.messages.map(\.message.dataTrack) == all.map(\.number))
        let receivers = bench.messages.flatMap(\.receivers)
        #expect(receivers.map(\.peer) == [peer(carl), peer(carl)] && receivers.allSatisfy { $0.label == "frames" })

        try bench.perform(.dataTrack(.setSubscriptions([.init(track: first, subscribes: false)])), carl)
        #expect(received(carl)?.map(\.track) == [second])
        bench.messages = []
        try send(7, from: ada)
        #expect(bench.messages.isEmpty)
    }

    @Test("Whoever subscribes to all of them receives those that are there, as its snapshot says, and those that come")
    mutating func all() throws {
        let ada = try join("ada")
        let first = try publish(1, "a", ada)
        let bob = try join("bob", all: true)
        #expect(try bench.room.snapshot(bob).dataTracks.map(\.track) == [first])
        let second = try publish(2, "b", ada)
        #expect(received(bob)?.map(\.track) == [first, second])
        #expect(try bench.room.snapshot(ada).dataTracks.isEmpty, "nobody receives its own")
        // Asked for again: its client waits for the reply.
        try bench.perform(.dataTrack(.setSubscriptions([.init(track: second, subscribes: true)])), bob)
        #expect(received(bob)?.map(\.track) == [first, second])
        try send(2, from: ada)
        #expect(bench.messages.last?.receivers.count == 1)
    }

    @Test(
        "The end of a data track, and of its publisher's stay, is announced to those who received it; its frames are refused"
    )
    mutating func end() throws {
        let ada = try join("ada"), bob = try join("bob", all: true)
        let first = try publish(1, "a", ada), second = try publish(2, "b", ada)
        _ = bench.consumeEvents(ada)
        try bench.perform(.dataTrack(.unpublish(handle: 1)), ada)
        #expect(
            bench.consumeEvents(ada).contains {
                if case .dataTrackUnpublished(let one) = $0 { one.sid == first } else { false }
            })
        #expect(received(bob)?.map(\.track) == [second])
        #expect(throws: RoomError.self) { try send(1, from: ada) }
        #expect(code(.dataTrack(.unpublish(handle: 1)), ada) == .trackNotFound)
        try bench.perform(.dataTrack(.setSubscriptions([.init(track: first, subscribes: true)])), bob)
        #expect(received(bob)?.map(\.track) == [second], "what is not there is skipped")
        bench.leave(ada)
        #expect(received(bob) == [])
        bench.leave(bob)
        #expect(bench.leftovers.isEmpty)
    }

    @Test("When the room ends nobody is notified that the data tracks of each of the others end")
    mutating func endOfRoom() throws {
        let ada = try join("ada"), bob = try join("bob", all: true)
        _ = try publish(1, "a", ada)
        #expect(received(bob)?.count == 1)
        try bench.step { (room, turn) throws(RoomError) in room.close(reason: .roomDeleted, turn: &turn) }
        #expect(bench.consumeEvents(bob) == [.ended(.roomDeleted, message: nil)])
        #expect(bench.leftovers.isEmpty)
    }

    @Test(
        "Refused: a handle or a name that is taken or none, words that are too long, more than a participant may have, without the permission to send"
    )
    mutating func refusals() throws {
        bench = RoomBench(
            limits: {
                var limits = RoomLimits(); limits.dataTracksPerParticipant = 2; return limits
            }())
        let ada = try join("ada"), mute = try join("mute") { $0.claims.video.canPublishData = false }
        let ghost = try join("ghost") { $0.claims.video.hidden = true }
        func track(_ handle: UInt16, _ name: String) -> SessionRequest {
            .dataTrack(.publish(DataTrackInfo(handle: handle, name: name)))
        }
        _ = try publish(1, "a", ada)
        #expect(code(track(1, "b"), ada) == .invalidRequest && code(track(2, "a"), ada) == .invalidRequest)
        #expect(code(track(0, "b"), ada) == .invalidRequest && code(track(2, ""), ada) == .invalidRequest)
        #expect(code(track(2, String(repeating: "n", count: 257)), ada) == .tooLarge)
        var long = DataTrackInfo(handle: 2, name: "b")
        long.schema = .init(name: "s", encoding: .custom(String(repeating: "e", count: 257)))
        #expect(code(.dataTrack(.publish(long)), ada) == .tooLarge)
        #expect(code(track(2, "b"), ada) == nil && code(track(3, "c"), ada) == .limitExceeded)
        #expect(code(track(1, "a"), mute) == .permissionDenied && code(track(1, "a"), ghost) == .permissionDenied)
    }

    @Test(
        "Without the permission to send, a participant's data tracks end; without that to subscribe, it receives none; a room without messages has none"
    )
    mutating func permissions() throws {
        let ada = try join("ada"), bob = try join("bob", all: true)
        _ = try publish(1, "a", ada)
        var permissions = try #require(bench.info(bob)?.permissions)
        permissions.canSubscribe = false
        try bench.setPermissions(permissions, "bob")
        #expect(received(bob) == [])
        permissions.canSubscribe = true
        try bench.setPermissions(permissions, "bob")
        #expect(received(bob)?.count == 1, "it has them again")
        permissions.canPublishData = false
        try bench.setPermissions(permissions, "ada")
        #expect(bench.info(ada)?.dataTracks.isEmpty == true)
        permissions.canPublishData = true
        try bench.setPermissions(permissions, "ada")
        _ = try publish(1, "a", ada)
        var policy = RoomPolicy()
        policy.allowsMessages = false
        try bench.setPolicy(policy)
        #expect(bench.info(ada)?.dataTracks.isEmpty == true)
        #expect(code(.dataTrack(.publish(DataTrackInfo(handle: 2, name: "b"))), ada) == .permissionDenied)
    }

    @Test(
        "A participant takes its data tracks to another room, where they have numbers of that room; what it received stays behind"
    )
    mutating func move() throws {
        let ada = try join("ada", all: true), bob = try join("bob", all: true)
        let sid = try publish(1, "a", ada), left = try publish(1, "b", bob)
        #expect(received(ada)?.map(\.track) == [left])
        var other = DataTrackTests()
        other.bench = RoomBench(seed: 2, id: RoomID(10), name: "booth")
        let carl = try other.join("carl", all: true)
        _ = try other.publish(1, "c", carl)
        try bench.move("ada", to: &other.bench)
        #expect(received(bob) == [])
        #expect(other.received(carl)?.map(\.track) == [sid])
        let moved = other.bench.consumeEvents(ada).compactMap {
            if case .moved(let snapshot) = $0 { snapshot } else { nil }
        }
        #expect(moved.first?.dataTracks.map(\.identity) == ["carl"])
        try other.send(1, from: ada)
        #expect(other.bench.messages.last?.receivers.map(\.peer) == [other.peer(carl)])
    }
}
