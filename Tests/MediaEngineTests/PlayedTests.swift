import MediaControl
import Primitives
import RTP
import TestSupport
import Testing

@testable import MediaEngine

@Suite("What the server plays itself, through an engine")
struct PlayedTests {
    private static let player = PeerID(500)

    private static func play(_ packet: [UInt8], isRTCP: Bool = false, into harness: EngineHarness) {
        var packet = packet
        harness.inOneTurn {
            packet.withUnsafeMutableBytes {
                harness.engine.receivePlayed($0, isRTCP: isRTCP, of: player, at: harness.now)
            }
        }
    }

    /// A room with one viewer of one played video.
    private static func room() throws -> (EngineHarness, TestClient) {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let bob = harness.addClient(room: Session.room)
        let ice = ICECredentials(ufrag: "nobody", password: "nobodynobodynobodynobody")
        harness.apply(
            .addPeer(
                PeerDescription(
                    id: player, room: Session.room, profile: .player, localICE: ice, remote: nil, feedbackSSRC: 9)))
        var track = Session.video(1, of: bob)
        (track.peer, track.feedback) = (player, [])
        track.encodings = [EncodingDescription(rid: nil, ssrc: 0x100, rtxSSRC: nil)]
        harness.apply(.addTrack(track))
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: bob)))
        return (harness, bob)
    }

    @Test("Every packet reaches the viewer, in order; without a transport a player lasts and is sent nothing")
    func forwarded() throws {
        let (harness, bob) = try Self.room()
        var camera = VP8Encoder(ssrc: 0x100)
        var sent = 0
        for index in 0..<2_000 {
            for packet in camera.frame(keyframe: index % 60 == 0) {
                Self.play(packet, into: harness)
                sent += 1
            }
            harness.run(for: .milliseconds(33))
        }
        #expect(bob.rtp.count == sent && sent >= 2_000)
        let numbers = bob.rtp.map(\.header.sequenceNumber)
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1 == $0 &+ 1 })
        // Longer than any limit for connecting and for consent.
        #expect(harness.engine.statistics.peers == 2)
        #expect(!harness.events.contains(.peerEnded(Self.player, .iceTimeout)))
    }

    @Test("A player is connected from the beginning, and reported so")
    func connected() throws {
        let (harness, _) = try Self.room()
        let report = try #require(harness.engine.report(.room(Session.room)))
        #expect(report.peers.first { $0.peer == Self.player }?.isConnected == true)
    }

    @Test("A goodbye makes a track silent at once, packets end that, and a removed player's are dropped")
    func goodbye() throws {
        let (harness, _) = try Self.room()
        var camera = VP8Encoder(ssrc: 0x100)
        for index in 0..<30 {
            for packet in camera.frame(keyframe: index == 0) { Self.play(packet, into: harness) }
            harness.run(for: .milliseconds(33))
        }
        harness.events = []
        var buffer = [UInt8](repeating: 0, count: 64)
        let length = buffer.withUnsafeMutableBytes { bytes in
            var writer = RTCPWriter(bytes)
            writer.beginReceiverReport(ssrc: 0x100)
            writer.appendGoodbye([0x100])
            return writer.length
        }
        Self.play(Array(buffer[..<length]), isRTCP: true, into: harness)
        harness.run(for: .milliseconds(100))
        #expect(harness.events.contains(.trackSilent(TrackID(1))))
        for packet in camera.frame() { Self.play(packet, into: harness) }
        harness.run(for: .milliseconds(33))
        #expect(harness.events.contains(.trackResumed(TrackID(1))))
        harness.apply(.removePeer(Self.player))
        let before = harness.engine.statistics.drops[.rtpUnknownStream]
        for packet in camera.frame() { Self.play(packet, into: harness) }
        #expect(harness.engine.statistics.drops[.rtpUnknownStream] > before)
    }
}
