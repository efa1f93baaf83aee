import MediaControl
import Primitives
import RTP
import Simulation
import TestSupport
import Testing

@testable import MediaEngine

@Suite("Capacity of an engine")
struct CapacityTests {
    private static func description(_ id: UInt64, room: RoomID = Session.room) -> PeerDescription {
        PeerDescription(
            id: PeerID(id), room: room, profile: .publishOnly,
            localICE: ICECredentials(ufrag: "dummy\(id)", password: "serverpasswordserverpassword"), remote: nil,
            feedbackSSRC: 1)
    }

    @Test("After five thousand peers the next one connects, too")
    func tablesGrow() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        for id in 0..<5_000 as Range<UInt64> { harness.apply(.addPeer(Self.description(10_000 + id))) }
        let client = harness.addClient(room: Session.room)
        #expect(client.transport.isConnected)
        #expect(harness.engine.statistics.peers == 5_001)
        #expect(harness.engine.statistics.commandsIgnored == 0)
    }

    @Test("Among five thousand peers of others, the report on a small room takes one part, or goes on behind who left")
    func smallRoom() throws {
        let harness = try EngineHarness()
        let small = RoomID(2)
        for room in [Session.room, small] { harness.apply(.addRoom(room)) }
        for id in 1...2 as ClosedRange<UInt64> { harness.apply(.addPeer(Self.description(id, room: small))) }
        for id in 0..<5_000 as Range<UInt64> { harness.apply(.addPeer(Self.description(10_000 + id))) }
        harness.apply(.addPeer(Self.description(3, room: small)))
        let whole = harness.engine.report(.room(small), from: 0, limit: 128)
        #expect(whole?.part.peers.map(\.peer) == [PeerID(1), PeerID(2), PeerID(3)])
        #expect(whole?.next == nil)
        let first = harness.engine.report(.room(small), from: 0, limit: 1)
        #expect(first?.part.peers.map(\.peer) == [PeerID(1)])
        harness.apply(.removePeer(PeerID(2)))
        let rest = harness.engine.report(.room(small), from: try #require(first?.next), limit: 128)
        #expect(rest?.part.peers.map(\.peer) == [PeerID(3)])
        #expect(rest?.next == nil)
    }

    @Test("A peer beyond the engine's limit is closed at once, and its owner is notified")
    func bound() throws {
        var configuration = EngineConfiguration()
        configuration.maximumPeers = 2
        let harness = try EngineHarness(configuration: configuration)
        harness.apply(.addRoom(Session.room))
        for id in 1...3 as ClosedRange<UInt64> { harness.apply(.addPeer(Self.description(id))) }
        #expect(harness.events == [.peerMeasured(PeerID(3), EndedPeer()), .peerEnded(PeerID(3), .overloaded)])
        harness.apply(.removePeer(PeerID(1)))
        harness.apply(.addPeer(Self.description(4)))
        #expect(harness.engine.statistics.peers == 2)
    }

    @Test(
        "All 32 tracks that a participant may publish on one connection are forwarded, with layers and retransmissions")
    func tracks() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let publisher = harness.addClient(room: Session.room), viewer = harness.addClient(room: Session.room)
        let count = UInt64(MediaLimits.tracksPerParticipant)
        for id in 1...count {
            var track = Session.video(id, of: publisher, rids: ["q", "h", "f"])
            for layer in 0..<3 {
                track.encodings[layer].ssrc = UInt32(id) << 8 | UInt32(layer)
                track.encodings[layer].rtxSSRC = UInt32(id) << 8 | UInt32(layer + 8)
            }
            harness.apply(.addTrack(track))
            // Without an estimate nothing but these limits keeps a video back.
            var subscription = Session.subscribe(id, to: id, by: viewer)
            subscription.feedback = [.nack, .pli]
            subscription.extensions[.transportSequence] = 0
            harness.apply(.subscribe(subscription))
        }
        #expect(harness.engine.statistics.commandsIgnored == 0)
        var encoders = (1...UInt32(count)).flatMap { id in
            (0..<3 as Range<UInt32>).map { VP8Encoder(ssrc: id << 8 | $0) }
        }
        for round in 0..<20 {
            for index in encoders.indices {
                let packets = encoders[index].frame(keyframe: round % 10 == 0)
                harness.inOneTurn { for packet in packets { harness.send(packet, from: publisher) } }
                // A repeat of the first packet by way of the layer's repeating stream.
                guard round == 0 else { continue }
                let repeated = Array(packets[0][2..<4] + packets[0][12...])
                harness.send(
                    TestPacket(
                        ssrc: encoders[index].ssrc | 8, payloadType: 97, sequence: 1, timestamp: 50_000,
                        payload: repeated
                    ).bytes, from: publisher)
            }
            harness.run(for: .milliseconds(33))
        }
        harness.run(for: .seconds(1))
        #expect(harness.engine.statistics.drops[.tooManyStreams] == 0)
        #expect(Set(viewer.rtp.map(\.header.ssrc)).count == Int(count))
    }
}
