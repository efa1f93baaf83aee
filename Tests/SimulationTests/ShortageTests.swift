import MediaControl
import MediaEngine
import Primitives
import Simulation
import Testing

@Suite("A video that does not fit")
struct ShortageTests {
    @Test(
        "H2, H7: a withheld video resumes within 8 s of the link's recovery; no other subscriber pays for its keyframe requests"
    )
    func heldBack() throws {
        let world = try World(seed: Seeds.seed(74))
        let room = world.openRoom()
        let link = LinkModel(delay: .milliseconds(25))
        let alice = world.join(room, ClientSettings(link: link))
        let bob = world.join(
            room,
            ClientSettings(
                uplink: link, downlink: LinkModel(delay: .milliseconds(25), rate: .kilobitsPerSecond(3_000))))
        let carol = world.join(room, ClientSettings(link: link))
        // One stream, no layers: nothing smaller can be sent instead.
        let camera = alice.publish(.camera(.vp8, bitrate: .kilobitsPerSecond(900)))
        let view = bob.subscribe(to: camera)
        let other = carol.subscribe(to: camera)
        world.run(for: .seconds(10))
        bob.downlink.model.rate = .kilobitsPerSecond(400)
        world.run(for: .seconds(5))
        let shown = view.frames.decoded, asked = camera.keyframeRequests.count
        world.run(for: .seconds(25))
        print("held back: \(view.frames.decoded - shown) pictures, \(camera.keyframeRequests.count - asked) keyframes")
        #expect(view.frames.decoded - shown < 200)
        #expect(camera.keyframeRequests.count - asked <= 5)
        #expect(other.frames.longestFreeze(until: world.now) < .milliseconds(200))
        bob.downlink.model.rate = .kilobitsPerSecond(3_000)
        let returned = world.now
        let before = view.frames.decoded
        world.run(for: .seconds(20))
        let last = try #require(view.frames.lastTime)
        print("back: \(view.frames.decoded - before) pictures of the last 20 s")
        #expect(view.frames.decoded - before > 12 * 30)
        #expect(last > returned)
        let held = world.events.compactMap {
            if case .subscriptionHeld(view.id, let isHeld) = $0.event { isHeld } else { nil }
        }
        #expect(
            held.first == true && held.last == false,
            "its subscriber is notified when the video stands and when it goes on")
        #expect(zip(held, held.dropFirst()).allSatisfy { $0 != $1 })
        #expect(world.faults == [])
    }

    /// A viewer behind 300 kbit/s, 10 s after it subscribed to a camera of 1,500 kbit/s.
    private func narrowViewer(
        of plan: VideoPlan, shortage: ShortagePolicy, seed: UInt64
    ) throws -> (world: World, view: View, decisions: [DecisionRecord], framesPerSecond: Double) {
        let world = try World(seed: Seeds.seed(seed))
        let room = world.openRoom()
        let wire = LinkModel(delay: .milliseconds(25))
        let viewer = world.join(
            room,
            ClientSettings(
                uplink: wire, downlink: LinkModel(delay: .milliseconds(25), rate: .kilobitsPerSecond(300))))
        viewer.setPolicy { $0.shortage = shortage }
        let view = viewer.subscribe(to: world.join(room, ClientSettings(link: wire)).publish(plan))
        world.run(for: .seconds(10))
        let before = view.frames.decoded
        world.run(for: .seconds(20))
        let decisions = world.workers[0].decisions(about: viewer.id)
        let inForce = world.workers[0].engine.report(.room(room))?.subscriptions.compactMap(\.decision) ?? []
        #expect(
            inForce.count == 1 && decisions.last.map { inForce[0].isSame(as: $0) } == true, "also in the room's report")
        print("300 kbit/s, \(shortage): \(view.frames.decoded - before) frames in 20 s, \(decisions.map(\.reason))")
        return (world, view, decisions, Double(view.frames.decoded - before) / 20)
    }

    @Test("B14: at 300 kbit/s a viewer of simulcast gets the smallest layer at its full frame rate, with the reason")
    func simulcastAt300() throws {
        let (world, view, decisions, rate) = try narrowViewer(of: .simulcast(), shortage: .pause, seed: 75)
        #expect(view.checker.origins.last?.layer == 0)
        #expect(rate > 25)
        guard case .bandwidth(let needed, let available)? = decisions.last?.reason else {
            Issue.record("\(decisions)")
            return
        }
        #expect(needed > available && needed > .kilobitsPerSecond(300))
        #expect(world.faults == [])
    }

    @Test("B14: at 300 kbit/s a single stream of 1,500 kbit/s is paused where the policy says so, with the reason")
    func singleStreamIsPaused() throws {
        let plan = VideoPlan.camera(.vp8, bitrate: .kilobitsPerSecond(1_500))
        let (world, _, decisions, rate) = try narrowViewer(of: plan, shortage: .pause, seed: 76)
        #expect(rate < 1)
        guard let last = decisions.last, case .shortage(let needed, let available) = last.reason else {
            Issue.record("\(decisions)")
            return
        }
        #expect(last.layer == nil)
        #expect(needed > available)
        #expect(world.faults == [])
    }

    @Test(
        "B14: at 300 kbit/s a single stream of 270 kbit/s is sent beyond the estimate where the policy allows it, with the reason"
    )
    func singleStreamIsOversent() throws {
        let plan = VideoPlan.camera(.vp8, bitrate: .kilobitsPerSecond(270))
        let (world, _, decisions, rate) = try narrowViewer(
            of: plan, shortage: .oversend(.kilobitsPerSecond(150)), seed: 77)
        #expect(rate > 5)
        // The policy does not bite before something is known about the link.
        let settled = decisions.filter { world.now - $0.time < .seconds(20) }
        #expect(settled.allSatisfy { $0.layer != nil })
        let excesses: [Bitrate] = settled.compactMap {
            if case .oversent(let excess) = $0.reason { excess } else { nil }
        }
        #expect(!excesses.isEmpty && excesses.allSatisfy { $0 <= .kilobitsPerSecond(150) })
        #expect(world.faults == [])
    }
}
