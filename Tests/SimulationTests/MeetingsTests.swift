import MediaControl
import Primitives
import Simulation
import Testing

@Suite("Many rooms with faults")
struct MeetingsTests {
    /// Everything that may go wrong on a way of 20 ms.
    static var trouble: LinkModel {
        var model = LinkModel(delay: .milliseconds(20), loss: 0.03)
        model.meanLossBurst = 2
        model.jitter = .milliseconds(15)
        model.reorder = 0.005
        model.duplicates = 0.005
        return model
    }

    /// A quiet way.
    static let healed = LinkModel(delay: .milliseconds(20))

    /// Small pictures of several packets, so that many rooms fit into a short test.
    static var camera: VideoPlan {
        var plan = VideoPlan.camera(bitrate: .kilobitsPerSecond(130), framesPerSecond: 7)
        plan.temporalLayers = 2
        plan.keyframeScale = 2
        return plan
    }

    static let microphone = AudioPlan(packetDuration: .milliseconds(60))

    static func enter(_ meeting: Meeting) {
        let member = meeting.join(ClientSettings(link: trouble))
        meeting.publish(camera, by: member)
        meeting.publish(microphone, by: member)
    }

    /// One thing that people or their networks do.
    static func disturb(_ meeting: Meeting) {
        let world = meeting.world
        guard let member = meeting.members.randomElement(using: &world.random) else { return }
        switch Int.random(in: 0..<8, using: &world.random) {
        case 0:
            meeting.leave(member, isKilled: Bool.random(using: &world.random))
            enter(meeting)
        case 1:
            guard let track = member.publications.randomElement(using: &world.random) else { return }
            meeting.unpublish(track, by: member)
        case 2: meeting.publish(camera, by: member)
        case 3: member.client.rebind()
        case 4:
            member.client.switchNetwork()
            member.client.restartICE()
        case 5: member.client.restartICE()
        case 6:
            guard let view = member.client.views.randomElement(using: &world.random) else { return }
            member.client.setPaused(true, view)
            world.plan(in: .milliseconds(300)) { member.client.setPaused(false, view) }
        default:
            guard let track = member.publications.randomElement(using: &world.random) else { return }
            world.apply(.setTrackMuted(track.id, true))
            world.plan(in: .milliseconds(300)) { world.apply(.setTrackMuted(track.id, false)) }
        }
    }

    /// Rooms of four, in which something happens every `pause` somewhere, then quiet; the world at its end.
    static func play(seed: UInt64, rooms: Int, trouble: TimeSpan, pause: TimeSpan) throws -> [Meeting] {
        let world = try World(seed: seed)
        let meetings = (0..<rooms).map { _ in Meeting(in: world) }
        for meeting in meetings { for _ in 0..<4 { enter(meeting) } }
        world.run(for: .seconds(1))
        world.repeat(every: pause, count: Int(trouble.nanoseconds / pause.nanoseconds)) { _ in
            if let meeting = meetings.randomElement(using: &world.random) { disturb(meeting) }
        }
        world.run(for: trouble)
        for client in world.clients {
            client.uplink.model = healed
            client.downlink.model = healed
        }
        world.run(for: .seconds(2))
        let before = world.now
        world.run(for: .seconds(1))
        let late = meetings.map { expectHealed($0, since: before) }
        let held = late.flatMap(\.views), connecting = late.flatMap(\.clients)
        #expect(connecting.count <= 1, "\(connecting.count) clients are not connected 3 s after the trouble")
        guard !held.isEmpty || !connecting.isEmpty else { return meetings }
        // Whose estimate the trouble has left too small for all videos: it grows by itself. Whose handshake it has broken: DTLS repeats what was lost.
        world.run(for: recovery)
        let later = world.now
        world.run(for: .seconds(1))
        for view in held {
            #expect(view.frames.lastTime.map { $0 > later } ?? false, "view \(view.id.rawValue) is still held")
        }
        for client in connecting {
            #expect(client.isConnected, "client \(client.id.rawValue) is not connected")
        }
        return meetings
    }

    /// For the estimate of a path without a limit: three of 2,000 rooms had a video that was held for longer than the three seconds in which all others were back.
    /// And for a handshake whose address changed after its flights were on their way: the timer of DTLS is up to 4 s long by then (of 10,000 rooms one had such a client).
    static let recovery = TimeSpan.seconds(5)

    /// After the trouble everybody sees and hears everybody, but for what is returned: the videos that are held for want of bandwidth, and the clients whose handshake goes on.
    static func expectHealed(_ meeting: Meeting, since moment: MonotonicTime)
        -> (views: [View], clients: [VirtualClient])
    {
        var short: [View] = []
        var connecting: [VirtualClient] = []
        /// Tracks whose publisher had been connected for a second.
        let sent = Set(
            meeting.members.filter { $0.client.connectedAt.map { $0 + .seconds(1) < moment } ?? false }.flatMap {
                $0.publications.map(\.id)
            })
        for member in meeting.members {
            guard let connectedAt = member.client.connectedAt else {
                connecting.append(member.client)
                continue
            }
            guard connectedAt + .seconds(1) < moment else { continue }
            for view in member.client.views where sent.contains(view.description.track ?? TrackID(0)) {
                let shown = view.description.kind == .audio ? view.lastArrival : view.frames.lastTime
                guard shown.map({ $0 <= moment }) ?? true else { continue }
                let statistics = meeting.world.statistics(of: meeting.room)
                let server = statistics?.subscriptions.first { $0.subscription == view.id }
                let track = statistics?.tracks.first { $0.track == view.description.track }
                if view.description.kind == .video, server?.decision?.reason.isShort == true {
                    short.append(view)
                    continue
                }
                Issue.record(
                    """
                    room \(meeting.room.rawValue), view \(view.id.rawValue) (\(view.description.kind)) is still: \(view.packets) packets, \
                    \(view.missing) missing, \(view.keyframeRequests) keyframes asked for, \(view.frames); \
                    \(String(describing: server)); \(String(describing: track))
                    """)
            }
        }
        return (short, connecting)
    }

    @Test(
        "G1, L3: 50 rooms of 4 with churn, loss, reordering, address changes and ICE restarts: no stream breaks, all recover",
        arguments: 0..<Environment.worlds)
    func fiftyRooms(world number: UInt64) throws {
        let meetings = try Self.play(
            seed: Seeds.seed(50 + number), rooms: 50, trouble: .seconds(4), pause: .milliseconds(20))
        let world = meetings[0].world
        #expect(world.faults == [])
        #expect(world.workers[0].statistics.packetsForwarded > 100_000)
        // A keyframe may be longer than what may wait for a path that has just broken down; another one repairs it. 27 of 40 worlds
        // have some, of hundreds of thousands of packets 11 at most.
        #expect(world.workers[0].statistics.drops[.outboundFull] <= 20)
    }

    @Test("L3: rooms with faults give the same digest twice", arguments: 0..<UInt64(Environment.rounds ?? 2))
    func sameTwice(round: UInt64) throws {
        let seed = Seeds.seed(1_000 + round)
        let digests = try (0..<2).map { _ in
            let meetings = try Self.play(seed: seed, rooms: 2, trouble: .seconds(4), pause: .milliseconds(250))
            #expect(meetings[0].world.faults == [])
            return meetings[0].world.digest
        }
        #expect(digests[0] == digests[1])
    }
}
