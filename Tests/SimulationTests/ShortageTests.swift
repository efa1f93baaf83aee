import MediaControl
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
        #expect(world.faults == [])
    }
}
