import CInstruments
import DataChannels
import Glibc
import MediaControl
import Primitives
import Simulation
import TestSupport
import Testing

@testable import MediaEngine

private let isCounting = ConditionTrait.enabled(if: cinstruments_is_counting() == 1, "this build's allocator counts")

/// What the engine keeps, in bytes that its thread has allocated and not freed. The clients' side is freed when it is read.
@Suite("Memory")
struct MemoryTests {
    /// A room whose members come, publish, receive some others' audio, and leave in any order.
    private final class Churn {
        private let harness: EngineHarness
        private var members: [(client: TestClient, track: UInt64, microphone: OpusEncoder)] = []
        private var random = RandomSource(seed: 8)
        private var next: UInt64 = 1

        init() throws {
            harness = try EngineHarness()
            harness.apply(.addRoom(Session.room))
        }

        var isEmpty: Bool { harness.engine.statistics.peers == 0 && harness.engine.statistics.tracks == 0 }

        /// `count` joins and leaves among at most ten; at the end all have left.
        func play(_ count: Int) {
            for _ in 0..<count {
                if members.count < 10, members.isEmpty || Bool.random(using: &random) { join() } else { leave() }
                for index in members.indices {
                    harness.send(members[index].microphone.packet(), from: members[index].client)
                }
                harness.run(for: .milliseconds(20))
            }
            while !members.isEmpty { leave() }
            harness.run(for: .seconds(1))
            harness.events = []
        }

        private func join() {
            let client = harness.addClient(room: Session.room)
            harness.apply(.addTrack(Session.audio(next, of: client)))
            for member in members.suffix(2) {
                harness.apply(.subscribe(Session.subscribe(next << 8, to: member.track, by: client, kind: .audio)))
                harness.apply(
                    .subscribe(Session.subscribe(next << 8 | 1, to: next, by: member.client, kind: .audio)))
                next += 1
            }
            members.append((client, next, OpusEncoder(ssrc: UInt32(truncatingIfNeeded: next << 8))))
            next += 1
        }

        private func leave() {
            let leaving = members.remove(at: Int.random(in: 0..<members.count, using: &random))
            harness.apply(.removePeer(leaving.client.id))
            harness.clients.removeAll { $0 === leaving.client }
        }
    }

    /// MARTLET_ROUNDS=1000 plays the whole number; by default a quarter, each join being a handshake of an unoptimised build.
    private static let churns = getenv("MARTLET_ROUNDS").flatMap { Int(String(cString: $0)) } ?? 250

    @Test("D8: joins and leaves of ten peers take at most 1 kB of memory each, so 1 MB for a thousand", isCounting)
    func churn() throws {
        let churn = try Churn()
        // Tables and buffers grow to what ten peers need at once.
        churn.play(50)
        let before = cinstruments_thread_bytes()
        churn.play(Self.churns)
        let grown = cinstruments_thread_bytes() - before
        print("\(Self.churns) joins and leaves: \(grown) bytes more")
        #expect(churn.isEmpty)
        #expect(grown <= 1_000 * Self.churns)
    }

    /// MARTLET_HOURS=24 plays a day; by default a tenth of an hour.
    private static let hours = getenv("MARTLET_HOURS").flatMap { Double(String(cString: $0)) } ?? 0.1

    @Test("L5: a long call takes no more memory over time", isCounting)
    func longCall() throws {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let publisher = harness.addClient(room: Session.room), viewer = harness.addClient(room: Session.room)
        harness.apply(.addTrack(Session.audio(1, of: publisher)))
        harness.apply(.subscribe(Session.subscribe(1, to: 1, by: viewer, kind: .audio)))
        var microphone = OpusEncoder(ssrc: 0x100)
        func pass(minutes: Int) {
            for _ in 0..<minutes {
                for _ in 0..<300 {
                    harness.send(microphone.packet(ticks: 9_600), from: publisher)
                    harness.run(for: .milliseconds(200))
                }
                // What the clients keep is no concern of the engine's.
                #expect(viewer.rtp.count == 300)
                (publisher.rtcp, viewer.rtcp, viewer.rtp, harness.events) = ([], [], [], [])
            }
        }
        let minutes = Int(Self.hours * 60)
        // An hour of estimates is kept; a shorter run sees that grow.
        let warmUp = min(minutes / 2, 65)
        pass(minutes: warmUp)
        let before = cinstruments_thread_bytes()
        pass(minutes: minutes - warmUp)
        let grown = cinstruments_thread_bytes() - before
        print("\(minutes) minutes: \(grown) bytes more since the first \(warmUp)")
        #expect(grown <= 20_000)
        #expect(harness.engine.statistics.peers == 2)
    }

    /// Bytes per member of a room of `count` whose members all publish a camera and a microphone, and receive all others or nothing.
    private static func bytes(perMemberOf count: UInt64, _ profile: PeerProfile) throws -> Double {
        let harness = try EngineHarness()
        harness.apply(.addRoom(Session.room))
        let before = cinstruments_thread_bytes()
        var cameras: [(client: TestClient, camera: VP8Encoder, microphone: OpusEncoder)] = []
        for number in 1...count {
            let client = harness.addClient(room: Session.room, profile: profile)
            harness.apply(.addTrack(Session.video(2 * number, of: client)))
            harness.apply(.addTrack(Session.audio(2 * number + 1, of: client)))
            cameras.append(
                (client, VP8Encoder(ssrc: UInt32(2 * number) << 8), OpusEncoder(ssrc: UInt32(2 * number + 1) << 8)))
        }
        for viewer in 1...count where profile == .full {
            for publisher in 1...count where publisher != viewer {
                let client = cameras[Int(viewer) - 1].client, id = (viewer << 8 | publisher) << 1
                harness.apply(.subscribe(Session.subscribe(id, to: 2 * publisher, by: client)))
                harness.apply(.subscribe(Session.subscribe(id | 1, to: 2 * publisher + 1, by: client, kind: .audio)))
            }
        }
        // Two seconds of 500 kbit/s from each.
        for turn in 0..<60 {
            for index in cameras.indices {
                for packet in cameras[index].camera.frame(keyframe: turn % 30 == 0, filler: 700) {
                    harness.send(packet, from: cameras[index].client)
                }
                harness.send(cameras[index].microphone.packet(), from: cameras[index].client)
            }
            harness.run(for: .milliseconds(33))
        }
        cameras = []
        harness.clients = []
        harness.events = []
        return Double(cinstruments_thread_bytes() - before) / Double(count)
    }

    /// Bytes per peer of twenty that are connected; with a data channel each, over which a message of 16 kB went both ways and nothing waits any more.
    private static func bytesOfPeers(withData: Bool) throws -> Double {
        let harness = try EngineHarness(), count = 20
        harness.apply(.addRoom(Session.room))
        let before = cinstruments_thread_bytes()
        let payload = DataPayload(isText: false, bytes: [UInt8](repeating: 1, count: 16_384))
        for _ in 0..<count {
            let client = harness.addClient(room: Session.room)
            if withData {
                harness.apply(.acceptData(client.id, DataTransport(port: 5_000, longestMessage: 65_536)))
                client.transport.useData(at: harness.now)
                harness.withData(of: client) { _ = $0.open(DataChannelTerms(label: "reliable"), at: harness.now) }
                harness.run(for: .milliseconds(200))
                harness.withData(of: client) { _ = $0.send(payload, on: "reliable", at: harness.now) }
                let receiver = DataReceiver(peer: client.id, label: "reliable")
                harness.apply(.sendData(DataDelivery(payload: payload, receivers: [receiver])))
            }
            harness.run(for: .seconds(1))
            if withData {
                #expect(harness.events.contains(.dataReceived(client.id, label: "reliable", payload)))
                harness.apply(.releaseData(client.id, cost: payload.cost))
            }
        }
        harness.clients = []
        harness.events = []
        return Double(cinstruments_thread_bytes() - before) / Double(count)
    }

    @Test("A peer whose data channels are idle takes at most 16 kB more than one without", isCounting)
    func idleData() throws {
        let more = try Self.bytesOfPeers(withData: true) - Self.bytesOfPeers(withData: false)
        print("an idle data peer: \(more) bytes more")
        #expect(more <= 16_384)
    }

    /// Not met: most of it are the histories of what it sends, which a full member has as well.
    @Test("B3: a publish-only peer takes at most half of the memory of one that receives nine others", isCounting)
    func publishOnly() throws {
        let lean = try Self.bytes(perMemberOf: 10, .publishOnly), full = try Self.bytes(perMemberOf: 10, .full)
        print("memory of a publish-only member \(Int(lean / 1_000)) kB, of a full one \(Int(full / 1_000)) kB")
        #expect(lean <= 0.8 * full)
        withKnownIssue("317 of 435 kB, 73 %, were seen") { #expect(lean <= 0.5 * full) }
    }
}
