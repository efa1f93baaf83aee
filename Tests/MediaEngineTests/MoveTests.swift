import MediaControl
import Primitives
import RTP
import Simulation
import TestSupport
import Testing

@testable import MediaEngine

@Suite("Peers that move to another room")
struct MoveTests {
    @Test("I8: a peer that moves publishes to the other room in the same stream, and the room that it left may end")
    func move() throws {
        let harness = try EngineHarness()
        let other = RoomID(2)
        for room in [Session.room, other] { harness.apply(.addRoom(room)) }
        let publisher = harness.addClient(room: Session.room)
        let former = harness.addClient(room: Session.room), next = harness.addClient(room: other)
        harness.apply(.addTrack(Session.video(1, of: publisher)))
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: former)))
        var camera = VP8Encoder(ssrc: 0x100)
        func film(_ pictures: Int, keyframe: Bool) {
            for index in 0..<pictures {
                for packet in camera.frame(keyframe: keyframe && index == 0) { harness.send(packet, from: publisher) }
                harness.run(for: .milliseconds(33))
            }
        }
        film(10, keyframe: true)
        #expect(former.rtp.count == 30)
        harness.apply(.unsubscribe(SubscriptionID(1)))
        harness.apply(.movePeer(publisher.id, to: other))
        harness.apply(.subscribe(Session.subscribe(2, to: 1, by: next)))
        film(10, keyframe: true)
        // The new viewer begins with what is kept since the last keyframe.
        #expect(former.rtp.count == 30 && next.rtp.count == 60)
        for (before, after) in zip(next.rtp, next.rtp.dropFirst()) {
            #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
        }
        #expect(harness.engine.report(.room(other))?.peers.map(\.peer).sorted() == [publisher.id, next.id].sorted())
        #expect(harness.engine.report(.room(Session.room))?.peers.map(\.peer) == [former.id])
        harness.apply(.movePeer(publisher.id, to: RoomID(77)))
        #expect(harness.engine.statistics.commandsIgnored == 1, "there is no such room")
        harness.apply(.removePeer(former.id))
        harness.apply(.removeRoom(Session.room))
        #expect(harness.engine.report(.room(Session.room)) == nil)
        film(5, keyframe: false)
        #expect(next.rtp.count == 75)
    }
}
