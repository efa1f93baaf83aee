import MediaControl
import Primitives
import RTP
import Simulation
import TestSupport
import Testing

@testable import MediaEngine

@Suite("Lifecycle of peers, tracks and subscriptions")
struct LifeTests {
    @Test("B1, B2, B3: a publish-only peer gets no media and next to no control traffic, and has no downlink state")
    func publishOnly() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let caster = harness.addClient(room: Session.room, profile: .publishOnly)
        let other = harness.addClient(room: Session.room)
        harness.apply(.addTrack(Session.video(1, of: caster, source: .screen)))
        harness.apply(.addTrack(Session.video(2, of: other)))
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: other)))
        // The control plane would not do this; the engine refuses it all the same.
        harness.apply(.subscribe(Session.subscribe(2, to: 2, by: caster)))
        #expect(harness.engine.statistics.commandsIgnored == 1)
        var screen = VP8Encoder(ssrc: 0x100), camera = VP8Encoder(ssrc: 0x200)
        let bytes = caster.bytes
        let seconds = 600
        for index in 0..<(seconds * 4) {
            for packet in screen.frame(keyframe: index == 0, ticks: 22_500) { harness.send(packet, from: caster) }
            for packet in camera.frame(keyframe: index == 0, ticks: 22_500) { harness.send(packet, from: other) }
            harness.run(for: .milliseconds(250))
        }
        #expect(caster.rtp.isEmpty)
        #expect(other.rtp.count == seconds * 4 * 3)
        #expect((caster.bytes - bytes) * 8 / seconds <= 5_000, "bits per second to a publish-only member")
        let statistics = try #require(harness.engine.report(.room(Session.room)))
        let own = try #require(statistics.peers.first { $0.peer == caster.id })
        #expect(own.downlinkStateBytes == 0)
        #expect(own.rtpPacketsSent == 0)
        #expect(statistics.peers.first { $0.peer == other.id }!.downlinkStateBytes > 0)
    }

    @Test("A server confined to its own machine answers no other machine, not even with valid credentials")
    func confined() throws {
        var configuration = EngineConfiguration()
        configuration.admittedHosts = [SocketAddress(ipv4: 0x0a00_0001, port: 0)]
        let harness = try EngineHarness(configuration: configuration)
        harness.apply(.addRoom(Session.room))
        let own = harness.addClient(room: Session.room)
        let unknown = harness.addClient(room: Session.room, connect: false)
        harness.run(for: .seconds(5))
        #expect(own.address.host == "10.0.0.1" && own.transport.isConnected)
        #expect(unknown.datagrams == 0 && !unknown.transport.isConnected)
    }

    @Test("C6: a muted track stops within the turn; unmuted video resumes with a keyframe in the same stream")
    func mute() throws {
        let stage = try FeedbackTests.Stage(viewers: 1)
        stage.film(10, keyframeFirst: true)
        let viewer = stage.viewers[0]
        stage.harness.inOneTurn {
            for packet in stage.camera.frame() { stage.harness.send(packet, from: stage.publisher) }
            stage.harness.apply(.setTrackMuted(TrackID(1), true))
        }
        #expect(viewer.rtp.count == 30)
        stage.film(20)
        #expect(viewer.rtp.count == 30)
        let asked = stage.publisher.keyframeRequests.count
        stage.harness.apply(.setTrackMuted(TrackID(1), false))
        #expect(stage.publisher.keyframeRequests.count == asked + 1)
        stage.film(10)
        #expect(viewer.rtp.count == 60)
        for (before, after) in zip(viewer.rtp, viewer.rtp.dropFirst()) {
            #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
        }
        #expect(viewer.rtp[30].payload.dropFirst(6).first == 0)
    }

    @Test("C6: after an unmute keyframes are requested of the layers that were sent, not of a stopped one")
    func unmuteAfterStop() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let publisher = harness.addClient(room: Session.room), viewer = harness.addClient(room: Session.room)
        var description = Session.video(1, of: publisher, rids: ["q", "h"])
        for index in 0..<2 { description.encodings[index].ssrc = UInt32(0x100 + index) }
        harness.apply(.addTrack(description))
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: viewer)))
        var layers = [VP8Encoder(ssrc: 0x100), VP8Encoder(ssrc: 0x101)]
        func film(_ pictures: Int, layers count: Int) {
            for index in 0..<pictures {
                for layer in 0..<count {
                    let packets = layers[layer].frame(keyframe: index == 0)
                    harness.inOneTurn { for packet in packets { harness.send(packet, from: publisher) } }
                }
                harness.run(for: .milliseconds(33))
            }
        }
        film(60, layers: 2)
        film(200, layers: 1)
        harness.apply(.setTrackMuted(TrackID(1), true))
        harness.run(for: .seconds(3))
        let count = publisher.feedback.count
        harness.apply(.setTrackMuted(TrackID(1), false))
        harness.run(for: .milliseconds(100))
        let asked = publisher.feedback.dropFirst(count).compactMap {
            if case .pictureLoss(let request) = $0.packet { request.mediaSSRC } else { nil }
        }
        #expect(asked == [0x100])
    }

    @Test("C10: resuming all paused video requests one keyframe of each publisher")
    func pauseAll() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let viewer = harness.addClient(room: Session.room)
        var publishers: [TestClient] = []
        var cameras: [VP8Encoder] = []
        for index in 1...5 {
            let publisher = harness.addClient(room: Session.room)
            publishers.append(publisher)
            cameras.append(VP8Encoder(ssrc: UInt32(index) << 8))
            harness.apply(.addTrack(Session.video(UInt64(index), of: publisher)))
            harness.apply(.subscribe(Session.subscribe(UInt64(index), to: UInt64(index), by: viewer)))
        }
        func film(_ frames: Int, keyframe: Bool = false) {
            for frame in 0..<frames {
                for index in 0..<5 {
                    for packet in cameras[index].frame(keyframe: keyframe && frame == 0) {
                        harness.send(packet, from: publishers[index])
                    }
                }
                harness.run(for: .milliseconds(33))
            }
        }
        film(30, keyframe: true)
        #expect(viewer.rtp.count == 450)
        for index in 1...5 { harness.apply(.setSubscriptionPaused(SubscriptionID(UInt64(index)), true)) }
        film(30)
        #expect(viewer.rtp.count == 450)
        let asked = publishers.map(\.keyframeRequests.count)
        for index in 1...5 { harness.apply(.setSubscriptionPaused(SubscriptionID(UInt64(index)), false)) }
        film(2)
        #expect(publishers.map(\.keyframeRequests.count) == asked.map { $0 + 1 })
        film(10, keyframe: true)
        #expect(viewer.rtp.count == 450 + 150)
    }

    @Test("C8: follow mode forwards another publisher in the same section: one SSRC, dense numbers, a keyframe first")
    func follow() throws {
        let stage = try FeedbackTests.Stage(viewers: 1)
        let viewer = stage.viewers[0]
        let second = stage.harness.addClient(room: Session.room)
        stage.harness.apply(.addTrack(Session.video(2, of: second)))
        var other = VP8Encoder(ssrc: 0x200)
        other.timestamp = 0x8000_0000
        for index in 0..<90 {
            for packet in other.frame(keyframe: index == 0) { stage.harness.send(packet, from: second) }
            stage.film(1, keyframeFirst: index == 0)
            if index == 80 { stage.harness.apply(.switchSubscription(SubscriptionID(1), to: TrackID(2))) }
        }
        // A third of a second without an answer: not long enough to ask twice.
        #expect(second.keyframeRequests.count == 1)
        for index in 0..<30 {
            for packet in other.frame(keyframe: index == 0) { stage.harness.send(packet, from: second) }
            stage.film(1)
        }
        #expect(viewer.rtp.count == 81 * 3 + 90)
        for (before, after) in zip(viewer.rtp, viewer.rtp.dropFirst()) {
            #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
            #expect(after.header.ssrc == 0xa000_0001)
            let step = Int32(bitPattern: after.header.timestamp &- before.header.timestamp)
            #expect(step >= 0 && step < 100_000)
        }
        stage.harness.apply(.switchSubscription(SubscriptionID(1), to: nil))
        let count = viewer.rtp.count
        stage.film(5)
        #expect(viewer.rtp.count == count)
    }

    @Test(
        "B18, F4: a killed peer is disconnected within the consent timeout and reported once, and its track is removed")
    func killed() throws {
        let stage = try FeedbackTests.Stage(viewers: 1)
        stage.film(30, keyframeFirst: true)
        stage.publisher.transport.isKilled = true
        let start = stage.harness.now
        var reported: MonotonicTime?
        while reported == nil, stage.harness.now - start < .seconds(40) {
            stage.harness.run(for: .milliseconds(250))
            if stage.harness.events.contains(.peerEnded(stage.publisher.id, .consentExpired)) {
                reported = stage.harness.now
            }
        }
        let ended = try #require(reported)
        #expect(ended - start <= .seconds(16))
        stage.harness.run(for: .seconds(60))
        #expect(stage.harness.events.filter { if case .peerEnded = $0 { true } else { false } }.count == 1)
        let statistics = stage.harness.engine.statistics
        #expect(statistics.peers == 1)
        #expect(statistics.tracks == 0)
        #expect(statistics.subscriptions == 1)
    }

    @Test("B17: a peer that sends close_notify is disconnected at once; so is one that the control plane removes")
    func goodbye() throws {
        let stage = try FeedbackTests.Stage(viewers: 2)
        stage.film(3, keyframeFirst: true)
        var batch = OutboundBatch(datagrams: 4, bytes: 8_000)
        stage.viewers[0].transport.close(into: &batch)
        for entry in batch.entries {
            stage.harness.sendRaw(Array(batch.bytes(of: entry)), from: stage.viewers[0].address)
        }
        #expect(stage.harness.events.contains(.peerEnded(stage.viewers[0].id, .closedByPeer)))
        #expect(stage.harness.engine.statistics.peers == 2)
        let peers = stage.harness.engine.report(.room(Session.room))?.peers ?? []
        let known = peers.first { $0.peer == stage.publisher.id }
        let before = try #require(known)
        stage.harness.apply(.removePeer(stage.publisher.id))
        #expect(stage.harness.events.contains(.peerEnded(stage.publisher.id, .removed)))
        let last = stage.harness.events.compactMap { event in
            if case .peerMeasured(stage.publisher.id, let measured) = event { measured } else { nil }
        }
        #expect(last.map(\.bytesReceived) == [before.bytesReceived])
        #expect(before.bytesReceived > 0 && last.allSatisfy { $0.bytesSent >= before.bytesSent })
        #expect(stage.publisher.transport.hasEnded)
        #expect(stage.harness.engine.statistics.tracks == 0)
        stage.harness.apply(.removePeer(stage.viewers[1].id))
        stage.harness.apply(.removeRoom(Session.room))
        #expect(stage.harness.engine.statistics.rooms == 0)
        #expect(stage.harness.engine.statistics.commandsIgnored == 0)
    }

    @Test("D8: 300 joins, publications and leaves in any order leave no state behind")
    func churn() throws {
        let harness = try EngineHarness()
        var random = RandomSource(seed: 11)
        harness.apply(.addRoom(Session.room))
        var members: [(client: TestClient, track: UInt64, microphone: OpusEncoder)] = []
        var nextTrack: UInt64 = 1, nextSubscription: UInt64 = 1
        for _ in 0..<300 {
            if members.count < 8, members.isEmpty || Bool.random(using: &random) {
                let client = harness.addClient(room: Session.room)
                harness.apply(.addTrack(Session.audio(nextTrack, of: client)))
                for member in members {
                    harness.apply(
                        .subscribe(Session.subscribe(nextSubscription, to: member.track, by: client, kind: .audio)))
                    harness.apply(
                        .subscribe(
                            Session.subscribe(nextSubscription + 1, to: nextTrack, by: member.client, kind: .audio)))
                    nextSubscription += 2
                }
                members.append((client, nextTrack, OpusEncoder(ssrc: UInt32(nextTrack) << 8)))
                nextTrack += 1
            } else {
                let leaving = members.remove(at: Int.random(in: 0..<members.count, using: &random))
                harness.apply(.removePeer(leaving.client.id))
                harness.clients.removeAll { $0 === leaving.client }
            }
            for index in members.indices {
                harness.send(members[index].microphone.packet(), from: members[index].client)
            }
            harness.run(for: .milliseconds(20))
            let statistics = harness.engine.statistics
            #expect(statistics.peers == members.count)
            #expect(statistics.tracks == members.count)
        }
        for member in members { harness.apply(.removePeer(member.client.id)) }
        harness.apply(.removeRoom(Session.room))
        harness.run(for: .seconds(1))
        let engine = harness.engine
        #expect(engine.statistics.subscriptions == 0)
        #expect(
            [
                engine.tables.peers.count, engine.tables.tracks.count, engine.tables.subscriptions.count,
                engine.tables.rooms.count,
            ] == [0, 0, 0, 0])
        #expect(
            [engine.tables.peerIndex.count, engine.tables.trackIndex.count, engine.tables.subscriptionIndex.count] == [
                0, 0, 0,
            ])
        #expect(
            [engine.whereabouts.addresses.count, engine.whereabouts.ufrags.count, engine.tables.sendingStreams.count]
                == [0, 0, 0])
        #expect(engine.nextDeadline == .distantFuture)
        #expect(engine.statistics.drops[.protectFailed] == 0)
    }

    @Test("B21: after a peer's address changed media continues in both directions")
    func rebinding() throws {
        let stage = try FeedbackTests.Stage(viewers: 1)
        stage.film(10, keyframeFirst: true)
        // Long enough that the viewer is settled where it is.
        stage.harness.run(for: .seconds(3))
        let viewer = stage.viewers[0]
        viewer.address = SocketAddress(ipv4: 0x0a00_ffff, port: 41_000)
        viewer.transport.checkNow(at: stage.harness.now)
        stage.film(30)
        #expect(stage.harness.events.contains(.peerMoved(viewer.id)))
        #expect(viewer.rtp.count >= 30 + 84)
    }

    @Test("A15: a publisher that replaces its source 300 times is never refused, nor is an old source that returns")
    func manySources() throws {
        let stage = try FeedbackTests.Stage(viewers: 1)
        stage.film(3, keyframeFirst: true)
        let viewer = stage.viewers[0]
        var first = VP8Encoder(ssrc: 0x5000, mid: "v1")
        for index in 0..<300 as Range<UInt32> {
            var camera = index == 0 ? first : VP8Encoder(ssrc: 0x5000 + index, mid: "v1")
            let before = viewer.rtp.count
            for packet in camera.frame(keyframe: true) { stage.harness.send(packet, from: stage.publisher) }
            #expect(viewer.rtp.count == before + 3, "source \(index)")
            if index == 0 { first = camera }
            stage.harness.run(for: .milliseconds(100))
        }
        for packet in first.frame(keyframe: true) { stage.harness.send(packet, from: stage.publisher) }
        #expect(viewer.rtp.count == 9 + 300 * 3 + 3)
        #expect(Set(viewer.rtp.map(\.header.ssrc)).count == 1)
        for (before, after) in zip(viewer.rtp, viewer.rtp.dropFirst()) {
            #expect(after.header.sequenceNumber == before.header.sequenceNumber &+ 1)
        }
        #expect(stage.harness.engine.statistics.drops[.tooManyStreams] == 0)
    }

    @Test("F8: datagrams from unknown sources are counted, bounded and change nothing")
    func unknownSources() throws {
        let stage = try FeedbackTests.Stage(viewers: 1)
        stage.film(3, keyframeFirst: true)
        var random = RandomSource(seed: 5)
        let peers = stage.harness.engine.whereabouts.addresses.count
        for index in 0..<20_000 {
            var garbage = (0..<Int.random(in: 1...80, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            if index % 2 == 0, garbage.count >= 20 {
                // A Binding request by its looks.
                garbage[0] = 0
                garbage[1] = 1
                garbage[4...7] = [0x21, 0x12, 0xa4, 0x42]
            }
            stage.harness.sendRaw(garbage, from: SocketAddress(ipv4: UInt32(0x0b00_0000 + index), port: 1_000))
        }
        let drops = stage.harness.engine.statistics.drops
        #expect(drops[.unknownSource] + drops[.stunUnknownUfrag] == 20_000)
        #expect(stage.harness.engine.whereabouts.addresses.count == peers)
        #expect(stage.harness.engine.statistics.peers == 2)
        stage.film(10)
        #expect(stage.viewers[0].rtp.count == 39)
    }

    @Test("A8: a subscriber without the track's codec is notified once and gets no media")
    func noCommonCodec() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let publisher = harness.addClient(room: Session.room), viewer = harness.addClient(room: Session.room)
        harness.apply(.addTrack(Session.video(1, of: publisher)))
        let h264 = PayloadFormat(
            codec: .h264, payloadType: 102, rtxPayloadType: nil, clockRateHz: 90_000, variant: "42e0")
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: viewer, codecs: [h264])))
        var camera = VP8Encoder(ssrc: 0x100)
        for index in 0..<20 {
            for packet in camera.frame(keyframe: index % 5 == 0) { harness.send(packet, from: publisher) }
            harness.run(for: .milliseconds(33))
        }
        #expect(viewer.rtp.isEmpty)
        #expect(harness.events.filter { $0 == .subscriptionHasNoCommonCodec(SubscriptionID(1)) }.count == 1)
    }

    @Test("A subscriber that connects late is served as soon as it is connected")
    func subscribedBeforeConnected() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let publisher = harness.addClient(room: Session.room)
        harness.apply(.addTrack(Session.video(1, of: publisher)))
        let viewer = harness.addClient(room: Session.room, connect: false)
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: viewer)))
        var camera = VP8Encoder(ssrc: 0x100)
        for index in 0..<30 {
            let isKeyframe =
                index == 0 || (publisher.keyframeRequests.last.map { harness.now - $0 < .milliseconds(34) } ?? false)
            for packet in camera.frame(keyframe: isKeyframe) { harness.send(packet, from: publisher) }
            harness.run(for: .milliseconds(33))
        }
        #expect(viewer.transport.isConnected)
        #expect(viewer.rtp.first?.payload.dropFirst(6).first == 0)
        #expect(viewer.rtp.count > 60)
    }
}
