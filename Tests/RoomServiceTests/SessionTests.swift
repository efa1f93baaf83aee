import AccessTokens
import MediaControl
import Primitives
import Rooms
import Synchronization
import TestSupport
import Testing

@testable import RoomService

/// Collects log entries.
final class FileRecorder: Sendable {
    private let entries = Mutex<[RoomLogEntry]>([])
    var all: [RoomLogEntry] { entries.withLock { $0 } }
    func append(_ entry: RoomLogEntry) { entries.withLock { $0.append(entry) } }
}

@Suite("Sessions")
struct SessionTests {
    let plane = FakePlane()
    let client = ClientDescriptions()

    @Test("Resume: a dropped socket misses nothing, media is not touched, the older stream ends")
    func resume() async throws {
        let service = RoomHost(media: plane)
        let bob = try await service.join(request("bob"))
        for index in 0..<3 { _ = try await service.join(request("m\(index)")) }
        #expect(await take(2, from: bob.events).map(\.sequence) == [1, 2])
        await service.detach(bob.session, attachment: bob.attachment)
        _ = try await service.join(request("m3"))
        #expect(await service.statistics().detachedSessions == 1)
        _ = plane.consumeCommands()
        let resumed = try await service.resume(bob.session, after: 2, claims: request("bob").claims)
        #expect(await take(2, from: resumed.events).map(\.sequence) == [3, 4])
        let again = try await service.resume(bob.session, after: 4, claims: request("bob").claims)
        #expect(await rest(of: resumed.events).isEmpty)
        _ = try await service.join(request("m4"))
        #expect(await take(1, from: again.events).map(\.sequence) == [5])
        #expect(plane.commands.isEmpty)
        #expect(
            await code { _ = try await service.resume(bob.session, after: 99, claims: request("bob").claims) }
                == .resumeTooLate)
        #expect(
            await code { _ = try await service.resume(SessionID("SE_x"), after: 0, claims: request("bob").claims) }
                == .sessionNotFound)
    }

    @Test("1.6: an overheard session id is resumed by nobody but the bearer of a token that could have joined it")
    func resumeIsAJoin() async throws {
        let cases: [(expected: RoomError.Code?, change: (inout AccessClaims) -> Void)] = [
            (.sessionNotFound, { $0.identity = "eve" }), (.sessionNotFound, { $0.apiKey = "other" }),
            (.permissionDenied, { $0.video.roomJoin = false }), (.roomMismatch, { $0.video.room = "Q" }),
            (.grantsChanged, { $0.video.canPublish = false }), (.grantsChanged, { $0.video.roomAdmin = true }),
            (.grantsChanged, { $0.video.hidden = true }), (.grantsChanged, { $0.video.canPublishSources = [.camera] }),
            (.grantsChanged, { $0.video.maxUplinkBitrate = 9_000_000 }),
            (.grantsChanged, { $0.video.subscribeRules = [] }), (nil, { $0.video.room = "R" }),
            (nil, { $0.expiresAt = 99 }), (nil, { $0.name = "Bob" }),
        ]
        for (number, (expected, change)) in cases.enumerated() {
            let service = RoomHost(media: plane)
            let bob = try await service.join(request("bob"))
            var claims = request("bob").claims
            change(&claims)
            do throws(RoomError) {
                _ = try await service.resume(bob.session, after: 0, claims: claims)
                #expect(expected == nil, "case \(number)")
            } catch {
                #expect(error.code == expected, "case \(number)")
            }
            #expect(await service.statistics().resumes == (expected == nil ? 1 : 0))
        }
    }

    @Test("D6: keep-alive and the resume window end sessions; signs of life keep them")
    func timeouts() async throws {
        let service = RoomHost(media: plane)
        let ada = try await service.join(request("ada"))
        let bob = try await service.join(request("bob"))
        for _ in 0..<6 {
            plane.pass(.seconds(10))
            #expect(await service.keepAlive(ada.session, attachment: ada.attachment))
            await service.tick()
        }
        #expect(await rest(of: bob.events).last?.event == .ended(.timeout, message: nil))
        #expect(await service.listRooms().map(\.participants) == [1])
        await service.detach(ada.session, attachment: ada.attachment)
        plane.pass(.seconds(31))
        await service.tick()
        #expect(
            await code { _ = try await service.resume(ada.session, after: 0, claims: request("ada").claims) }
                == .sessionNotFound)
        plane.pass(.seconds(21))
        await service.tick()
        #expect(await service.listRooms().isEmpty)
    }

    @Test("C17: a hundred thousand events reach twenty members without a gap, over dropped and resumed sockets")
    func hundredThousandEvents() async throws {
        let service = RoomHost(media: plane)
        var dice = RandomSource(seed: 17)
        var members: [(joined: JoinedSession, events: SessionEvents, attachment: UInt64, last: UInt64)] = []
        for index in 0..<20 {
            let joined = try await service.join(request("m\(index)"))
            members.append((joined, joined.events, joined.attachment, joined.snapshot.sequence))
        }
        // Those who came first have been notified of the others.
        var owed = (0..<20).map { 19 - $0 }
        var total = 0
        var gaps = 0
        while total < 100_000 {
            let dropped = dice.next() % 4 == 0 ? Int(dice.next() % 20) : nil
            if let dropped {
                let member = members[dropped]
                await service.detach(member.joined.session, attachment: member.attachment)
            }
            let changes = 1 + Int(dice.next() % 40)
            for change in 0..<changes {
                let speaker = members[Int(dice.next() % 20)].joined.session
                try await service.perform(.setMetadata(name: nil, metadata: "\(total + change)"), in: speaker)
            }
            if let dropped {
                let resumed = try await service.resume(
                    members[dropped].joined.session, after: members[dropped].last, claims: request("m\(dropped)").claims
                )
                (members[dropped].events, members[dropped].attachment) = (resumed.events, resumed.attachment)
            }
            for index in members.indices {
                for event in await take(owed[index] + changes, from: members[index].events) {
                    gaps += event.sequence == members[index].last + 1 ? 0 : 1
                    members[index].last = event.sequence
                    total += 1
                }
                owed[index] = 0
            }
        }
        #expect(gaps == 0)
        #expect(await service.statistics().slowReaders == 0)
    }

    @Test("A reader that does not keep up loses its stream, disturbs nobody, and may resume")
    func slowReader() async throws {
        var configuration = RoomServiceConfiguration()
        configuration.maxQueuedEvents = 4
        let service = RoomHost(configuration: configuration, media: plane)
        let slow = try await service.join(request("slow"))
        for index in 0..<6 { _ = try await service.join(request("m\(index)") { $0.wantsRoster = false }) }
        #expect(await rest(of: slow.events).map(\.sequence) == [1, 2, 3, 4])
        #expect(await service.statistics().slowReaders == 1)
        #expect(await service.statistics().detachedSessions == 1)
        let resumed = try await service.resume(slow.session, after: 4, claims: request("slow").claims)
        #expect(await take(2, from: resumed.events).map(\.sequence) == [5, 6])
    }

    @Test("A room's deadline comes earlier with what happens in it, although it was looked for before")
    func earlierDeadline() async throws {
        var configuration = RoomServiceConfiguration()
        configuration.resumeWindow = .seconds(5)
        let service = RoomHost(configuration: configuration, media: plane)
        let bob = try await service.join(request("bob"))
        for _ in 0..<2 { await service.tick() }
        await service.detach(bob.session, attachment: bob.attachment)
        plane.pass(.seconds(4))
        await service.tick()
        #expect(await service.statistics().participants == 1)
        plane.pass(.seconds(1))
        await service.tick()
        #expect(await service.statistics().participants == 0)
    }

    @Test("Replay is bounded: what is no longer kept asks for a new join")
    func replayBound() async throws {
        var configuration = RoomServiceConfiguration()
        configuration.maxReplayEvents = 3
        let service = RoomHost(configuration: configuration, media: plane)
        let bob = try await service.join(request("bob"))
        for index in 0..<5 { _ = try await service.join(request("m\(index)")) }
        #expect(
            await code { _ = try await service.resume(bob.session, after: 1, claims: request("bob").claims) }
                == .resumeTooLate)
        let resumed = try await service.resume(bob.session, after: 2, claims: request("bob").claims)
        #expect(await take(3, from: resumed.events).map(\.sequence) == [3, 4, 5])
    }

    @Test("WHIP: joins and publishes in one step; what publishes nothing is refused and leaves nothing")
    func whip() async throws {
        let service = RoomHost(media: plane)
        let session = try await service.joinPublisher(request("cam"), offer: client.offer([.audio("0"), .video("1")]))
        #expect(
            session.room == "R" && session.participant.tracks.count == 2 && session.participant.profile == .publishOnly)
        #expect(session.answer.iceTag == (try await service.iceTag(session.session, connection: "main")))
        #expect(
            await code {
                let only = request("x") { $0.claims.video.canPublishSources = [.screenShareAudio] }
                _ = try await service.joinPublisher(only, offer: client.offer([.video("0")]))
            } == .permissionDenied)
        #expect(
            await code { _ = try await service.joinPublisher(request("y", room: "Q"), offer: "nonsense") }
                == .invalidDescription)
        #expect(await service.listRooms().map(\.name) == ["R"])
        await service.leave(session.session)
        #expect(await code { _ = try await service.iceTag(session.session, connection: "main") } == .sessionNotFound)
    }

    @Test("WHEP: plays one participant or follows the dominant speaker")
    func whep() async throws {
        let service = RoomHost(media: plane)
        let offer = client.offer([.audio("0", "recvonly"), .video("1", "recvonly")])
        let cam = try await service.joinPublisher(request("cam"), offer: client.offer([.audio("0"), .video("1")]))
        let viewer = try await service.joinViewer(request("v1"), offer: offer, follow: .identity("cam"))
        #expect(Set(viewer.answer.tracks.values) == Set(cam.answer.tracks.values))
        _ = try await service.joinViewer(request("v2"), offer: offer, follow: .dominantSpeaker)
        #expect(
            await code {
                let denied = request("v3") { $0.claims.video.canSubscribe = false }
                _ = try await service.joinViewer(denied, offer: offer, follow: .dominantSpeaker)
            } == .permissionDenied)
        #expect(plane.commands.count { if case .subscribe = $0 { true } else { false } } == 4)
    }

    @Test("Media events find their room by number; a WHIP session ends with its transport")
    func mediaEvents() async throws {
        let service = RoomHost(media: plane)
        let watcher = try await service.join(request("watcher"))
        _ = try await service.joinPublisher(request("cam"), offer: client.offer([.audio("0")]))
        guard case .addPeer(let peer)? = plane.commands.first(where: { if case .addPeer = $0 { true } else { false } })
        else {
            Issue.record("no peer")
            return
        }
        await service.receive([
            .peerConnected(peer.id), .peerConnected(PeerID(12 << 32)), .peerEnded(peer.id, .consentExpired),
        ])
        let events = await take(7, from: watcher.events)
        guard case .participantLeft(_, "cam", .connectionLost)? = events.last?.event else {
            Issue.record("\(events.map(\.event))")
            return
        }
        #expect(await service.statistics().connectionsEnded == ["consentExpired": 1])
    }

    @Test("Statistics of the worker come back with the names of the control plane")
    func report() async throws {
        let service = RoomHost(media: plane)
        let ada = try await service.join(request("ada"))
        let answer = try await service.offer(ada.session, connection: "pub", sdp: client.offer([.audio("0")]))
        var (room, peer, track) = (RoomID(0), PeerID(0), TrackID(0))
        for command in plane.commands {
            switch command {
            case .addRoom(let id): room = id
            case .addPeer(let description): peer = description.id
            case .addTrack(let description): track = description.id
            default: continue
            }
        }
        var statistics = MediaReport()
        var peerStatistics = PeerStatistics(peer: peer)
        peerStatistics.isConnected = true
        statistics.peers = [peerStatistics, PeerStatistics(peer: PeerID(99))]
        statistics.tracks = [TrackStatistics(track: track, kind: .audio)]
        plane.set(statistics, for: room)
        let report = try await service.report(onRoom: "R")
        #expect(report.participants.count == 1 && report.participants[0].identity == "ada")
        #expect(report.participants[0].connections.map(\.id) == ["pub"])
        #expect(report.participants[0].tracks.map(\.info.sid) == [answer.tracks["0"]])
        statistics.tracks[0].layers = [LayerStatistics()]
        for kilobits in [200, 300] as [Int64] {
            statistics.tracks[0].layers[0].bitrate = .kilobitsPerSecond(kilobits)
            plane.set(statistics, for: room)
            await service.measureQuality()
        }
        let track0 = try #require(answer.tracks["0"])
        #expect(
            try await service.history(ofStream: track0, in: "R").map(\.bitrate)
                == [.kilobitsPerSecond(200), .kilobitsPerSecond(300)])
        #expect(
            try await service.history(ofRoom: "R").map(\.uplink) == [.kilobitsPerSecond(200), .kilobitsPerSecond(300)])
        #expect(try await service.history(ofRoom: "R").allSatisfy { $0.participants == 1 && $0.tracks == 1 })
        #expect(try await service.decisions(about: "ada", in: "R").decisions.isEmpty, "it is sent nothing")
        let events = await take(2, from: ada.events)
        #expect(
            events.last?.event
                == .qualityChanged([ParticipantQuality(participant: report.participants[0].sid, quality: 5)]))
        #expect(await code { _ = try await service.report(onRoom: "none") } == .roomNotFound)

        // I7: a network gets worse step by step, and well again.
        for (loss, isSilent, expected) in [
            (0.02, false, 4), (0.05, false, 3), (0.3, false, 1), (0, true, 0), (0, false, 5),
        ] {
            statistics.peers[0].estimate = .kilobitsPerSecond(900)
            statistics.peers[0].downlinkLoss = loss
            statistics.peers[0].rtpPacketsSent += 100
            statistics.peers[0].isSilent = isSilent
            plane.set(statistics, for: room)
            await service.measureQuality()
            #expect(try await service.participant("ada", in: "R").info.quality == expected)
        }
    }

    @Test("Whoever returns after a connection has ended joins again: news of that may not have arrived")
    func lostConnection() async throws {
        let service = RoomHost(media: plane)
        let joining = request("ada") { ($0.claims.video.room, $0.recovery) = ("R", .byJoining) }
        let ada = try await service.join(joining)
        let sid = ada.snapshot.participant.sid
        _ = plane.consumeCommands()
        let offer = ClientDescriptions(ufrag: "clnt").offer([.audio("0")])
        _ = try await service.offer(ada.session, connection: "publisher", sdp: offer)
        let peer = try #require(
            plane.consumeCommands().lazy.compactMap { if case .addPeer(let peer) = $0 { peer.id } else { nil } }.first)
        _ = try await service.resume(participant: sid, claims: joining.claims)
        await service.receive([.peerEnded(peer, .consentExpired)])
        #expect(
            await code { _ = try await service.resume(participant: sid, claims: joining.claims) } == .resumeTooLate)
        _ = try await service.join(joining)
    }

    @Test(
        "Whoever returns while the worker hangs keeps the older socket; where the worker begins to hang, the session waits for the next one"
    )
    func returnsToHungWorker() async throws {
        let service = RoomHost(media: plane)
        let joining = request("ada") {
            $0.claims.video.room = "R"
            ($0.recovery, $0.offering, $0.receivingConnection) = (.byJoining, .serverAtOnce, Room.serverConnection)
        }
        let ada = try await service.join(joining)
        let sid = ada.snapshot.participant.sid
        func refusal() async -> RoomError.Code? {
            await code { _ = try await service.resume(participant: sid, claims: joining.claims) }
        }
        plane.setHangs(true)
        #expect(await refusal() == .mediaUnavailable)
        #expect(await service.keepAlive(ada.session, attachment: ada.attachment), "the older socket goes on")
        plane.setHangs(false)
        plane.hangAtNextCommand()
        #expect(await refusal() == .mediaUnavailable)
        #expect(await service.statistics().detachedSessions == 1)
        plane.setHangs(false)
        #expect(await refusal() == nil)
        let statistics = await service.statistics()
        #expect(statistics.detachedSessions == 0 && statistics.resumes == 1)
    }

    @Test("Whoever returns to a room with more tracks than events may wait has a stream that goes on")
    func manyTracks() async throws {
        var configuration = RoomServiceConfiguration()
        configuration.maxQueuedEvents = 4
        let service = RoomHost(configuration: configuration, media: plane)
        for index in 0..<4 {
            let offer = client.offer([.audio("0"), .video("1")])
            _ = try await service.joinPublisher(request("p\(index)"), offer: offer)
        }
        let joining = request("ada") {
            ($0.claims.video.room, $0.recovery, $0.autoSubscribe) = ("R", .byJoining, false)
        }
        let ada = try await service.join(joining)
        let back = try await service.resume(participant: ada.snapshot.participant.sid, claims: joining.claims)
        #expect(back.snapshot.others.flatMap(\.tracks).count == 8)
        _ = try await service.join(request("bob") { $0.autoSubscribe = false })
        #expect(await take(1, from: back.events).count == 1)
        #expect(await service.statistics().slowReaders == 0)
        #expect(await service.statistics().detachedSessions == 0)
    }

    @Test("Whoever returns gets no notice that somebody left who has come back under another sid")
    func departedForGood() async throws {
        let service = RoomHost(media: plane)
        let joining = request("ada") { ($0.claims.video.room, $0.recovery) = ("R", .byJoining) }
        let ada = try await service.join(joining)
        let bob = try await service.join(request("bob"))
        let eve = try await service.join(request("eve"))
        await service.leave(bob.session)
        _ = try await service.join(request("bob"))
        _ = await service.detach(ada.session, attachment: ada.attachment)
        await service.leave(eve.session)
        let back = try await service.resume(participant: ada.snapshot.participant.sid, claims: joining.claims)
        #expect(back.departed.map(\.identity) == ["bob", "eve"])
        #expect(back.departedForGood.map(\.identity) == ["eve"])
    }
}
