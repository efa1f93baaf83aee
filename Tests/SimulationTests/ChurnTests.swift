import MediaControl
import Primitives
import Simulation
import Testing

@testable import MediaEngine

@Suite("Joins and leaves")
struct ChurnTests {
    @Test("D8: ten peers come, go, publish and move 1,000 times: the engine returns to its initial state")
    func thousandChurns() throws {
        let world = try World(seed: Seeds.seed(61))
        let meeting = Meeting(in: world)
        let link = LinkModel(delay: .milliseconds(3))
        let enter = {
            let member = meeting.join(ClientSettings(link: link))
            meeting.publish(.camera(bitrate: .kilobitsPerSecond(10), framesPerSecond: 1), by: member)
            meeting.publish(AudioPlan(packetDuration: .milliseconds(120)), by: member)
        }
        for _ in 0..<10 { enter() }
        for turn in 0..<1_000 {
            let chosen = meeting.members.randomElement(using: &world.random)
            let member = try #require(chosen)
            switch turn % 4 {
            case 0:
                meeting.leave(member, isKilled: turn % 8 == 0)
                enter()
            case 1: meeting.publish(.camera(bitrate: .kilobitsPerSecond(10), framesPerSecond: 1), by: member)
            case 2: if let track = member.publications.last { meeting.unpublish(track, by: member) }
            default: member.client.rebind()
            }
            world.run(for: .milliseconds(20))
        }
        for member in meeting.members { meeting.leave(member) }
        // The killed ones are still to be noticed.
        world.run(for: .seconds(40))
        #expect(world.faults == [])
        let engine = world.workers[0].engine
        let statistics = engine.statistics
        #expect(statistics.peers == 0 && statistics.tracks == 0 && statistics.subscriptions == 0)
        #expect(
            engine.whereabouts.addresses.count == 0 && engine.whereabouts.ufrags.count == 0
                && engine.tables.sendingStreams.count == 0)
        #expect(
            engine.tables.peerIndex.count == 0 && engine.tables.trackIndex.count == 0
                && engine.tables.subscriptionIndex.count == 0)
        // Slots are used again: what ten peers and their ghosts need at once, not what came in all.
        #expect(engine.tables.peers.end < 200 && engine.tables.tracks.end < 400)
        world.closeRoom(meeting.room)
        world.run(for: .seconds(1))
        #expect(engine.statistics.rooms == 0 && engine.nextDeadline == .distantFuture)
    }

    @Test("F5: 1,000 handshakes during floods of ClientHellos, RTP and STUN from unknown sources: all complete")
    func handshakesUnderFlood() throws {
        let world = try World(seed: Seeds.seed(62))
        let room = world.openRoom()
        let count = 1_000
        var clients: [VirtualClient] = []
        world.repeat(every: .milliseconds(5), count: count) { _ in
            clients.append(world.join(room, ClientSettings(link: LinkModel(delay: .milliseconds(10), loss: 0.02))))
        }
        world.repeat(every: .microseconds(500), count: 10 * count) { turn in
            let unknown = SocketAddress(ipv4: 0xc000_0200 | UInt32(turn & 0xff), port: UInt16(1_024 + turn % 60_000))
            // Half of them guess the addresses of those who are shaking hands, from another port.
            let victim = turn % 2 == 0 ? clients.randomElement(using: &world.random)?.address : nil
            let source = victim.map { SocketAddress(high: $0.high, low: $0.low, port: 9) } ?? unknown
            world.inject(Self.attack(turn, &world.random), from: source)
        }
        world.run(for: .milliseconds(Int64(5 * count)) + .seconds(5))
        #expect(clients.count == count)
        #expect(clients.filter { !$0.isConnected }.isEmpty, "every legitimate handshake finishes")
        let drops = world.workers[0].statistics.drops
        print("\(count) handshakes, \(drops.total) datagrams of unknown sources dropped")
        #expect(drops.total >= UInt64(10 * count))
    }

    /// A ClientHello, RTP, or a STUN request for a ufrag that may exist.
    private static func attack(_ turn: Int, _ random: inout RandomSource) -> [UInt8] {
        let noise = (0..<60).map { _ in UInt8.random(in: 0...255, using: &random) }
        switch turn % 3 {
        case 0: return [22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60, 1, 0, 0, 48] + noise
        case 1: return [0x80, 96] + noise
        default:
            let name = Array("s\(turn / 10)x0:zzzz".utf8)
            let padded = name + [UInt8](repeating: 0, count: (4 - name.count % 4) % 4)
            let body = [0, 6, 0, UInt8(name.count)] + padded
            return [0, 1, 0, UInt8(body.count), 0x21, 0x12, 0xa4, 0x42] + noise.prefix(12) + body
        }
    }
}
