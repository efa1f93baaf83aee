import Forwarding
import MediaControl
import Primitives
import Testing

/// H8: sharing out bandwidth, case by case.
@Suite("Allocation")
struct AllocationTests {
    private static func check(_ line: AllocationCase) {
        let decisions = Allocation.decide(line.requests, under: line.rules)
        #expect(decisions.map { shown($0.layer) }.joined(separator: " ") == line.expected, "\(line.name): \(decisions)")
        if let reasons = line.reasons {
            #expect(decisions.map { word($0.reason) }.joined(separator: " ") == reasons, "\(line.name): \(decisions)")
        }
    }

    @Test(
        "H8: one camera gets what fits and what the subscriber prefers",
        arguments: [
            AllocationCase("everything fits", 5_000, [camera()], "720p30", why: "best"),
            AllocationCase("just enough with the margin", 1_650, [camera()], "720p30", why: "best"),
            AllocationCase("not enough for the margin", 1_640, [camera()], "720p15", why: "bandwidth"),
            AllocationCase("half rate of the large picture", 1_200, [camera()], "720p15", why: "bandwidth"),
            AllocationCase("the middle picture", 600, [camera()], "360p30", why: "bandwidth"),
            AllocationCase("the middle picture at half rate", 400, [camera()], "360p15", why: "bandwidth"),
            AllocationCase("the small picture", 200, [camera()], "180p30", why: "bandwidth"),
            AllocationCase("the small picture, thinned", 120, [camera()], "180p15", why: "bandwidth"),
            AllocationCase("the least there is", 75, [camera()], "180p8", why: "bandwidth"),
            AllocationCase("not even that", 74, [camera()], "-", why: "shortage"),
            AllocationCase("nothing at all", 0, [camera()], "-", why: "shortage"),
            AllocationCase("a picture of one layer", 700, [camera(Offers.single)], "720p30", why: "best"),
            AllocationCase(
                "a picture of one layer that does not fit", 500, [camera(Offers.single)], "-", why: "shortage"),
            AllocationCase("a window of 360 lines", 5_000, [camera(height: 360)], "360p30", why: "preference"),
            AllocationCase("a window between two layers", 5_000, [camera(height: 200)], "360p30", why: "preference"),
            AllocationCase("a window larger than any layer", 5_000, [camera(height: 1_080)], "720p30", why: "best"),
            AllocationCase(
                "a thumbnail smaller than any layer", 5_000, [camera(height: 90)], "180p30", why: "preference"),
            AllocationCase("a layer by rank", 5_000, [camera(spatial: 1)], "360p30", why: "preference"),
            AllocationCase("fifteen frames are enough", 5_000, [camera(frames: 15)], "720p15", why: "preference"),
            AllocationCase(
                "one frame is asked for: the slowest there is", 5_000, [camera(frames: 1)], "720p8", why: "preference"),
            AllocationCase("B8: film at half its rate is smooth enough", 600, [camera(Offers.film)], "720p12"),
            AllocationCase(
                "a larger picture that costs less is taken", 500, [camera(Offers.still)], "720p30", why: "best"),
            AllocationCase("the layers are not sent", 5_000, [camera([])], "-", why: "blocked"),
            AllocationCase("paused by the viewer", 5_000, [camera(blocked: .paused)], "-", why: "blocked"),
            AllocationCase("out of sight", 5_000, [camera(blocked: .hidden)], "-", why: "blocked"),
        ])
    func one(_ line: AllocationCase) { Self.check(line) }

    @Test(
        "H8: every video gets its lowest step before any gets more",
        arguments: [
            AllocationCase("two share evenly", 1_200, [camera(), camera()], "360p30 360p30"),
            AllocationCase("the first of equals takes the rest", 1_000, [camera(), camera()], "360p30 360p15"),
            AllocationCase(
                "four at the least", .presentation, 300, [camera(), camera(), camera(), camera()],
                "180p8 180p8 180p8 180p8"),
            AllocationCase(
                "four where three fit", 260, [camera(), camera(), camera(), camera()],
                "180p8 180p8 180p8 -", why: "bandwidth bandwidth bandwidth shortage"),
            AllocationCase(
                "the pinned one is not the one left out", 160, [camera(), camera(), camera(pinned: true)],
                "180p8 - 180p8"),
            AllocationCase(
                "presentation keeps the others alive", .presentation, 1_900, [camera(pinned: true), camera()],
                "720p30 360p15"),
            AllocationCase(
                "a costly single layer leaves room for cheap ones", 700, [camera(), camera(Offers.single)],
                "180p8 720p30"),
            AllocationCase(
                "one that cannot be sent does not block the others", 400,
                [camera(Offers.single), camera()], "- 360p15"),
            AllocationCase("hidden ones cost nothing", 1_700, [camera(), camera(blocked: .hidden)], "720p30 -"),
            AllocationCase(
                "thumbnails first have what they want", 2_000,
                [camera(height: 180), camera(height: 180), camera(height: 180), camera()],
                "180p30 180p30 180p30 720p15"),
        ])
    func everybody(_ line: AllocationCase) { Self.check(line) }

    @Test(
        "H8: more important videos rise first",
        arguments: [
            AllocationCase(
                "grid does not prefer the speaker", .grid, 1_200, [camera(), camera(dominant: true)],
                "360p30 360p30"),
            AllocationCase(
                "collaboration does", .collaboration, 1_400, [camera(), camera(dominant: true)], "180p30 720p15"),
            AllocationCase(
                "collaboration lets the others grow", .collaboration, 2_200, [camera(), camera(dominant: true)],
                "360p30 720p30"),
            AllocationCase(
                "presentation serves the speaker first", .presentation, 1_800, [camera(), camera(dominant: true)],
                "180p30 720p30"),
            AllocationCase(
                "a pin beats the speaker", .presentation, 1_800, [camera(pinned: true), camera(dominant: true)],
                "720p30 180p30"),
            AllocationCase("a pin counts in a grid", .grid, 1_400, [camera(), camera(pinned: true)], "180p30 720p15"),
            AllocationCase(
                "the publisher's priority", .presentation, 1_800, [camera(), camera(publisher: .high)],
                "180p30 720p30"),
            AllocationCase(
                "the viewer's overrides it", .presentation, 1_800,
                [camera(), camera(priority: .low, publisher: .high)], "720p30 180p30"),
            AllocationCase(
                "low priority in a grid gives way", .grid, 700, [camera(priority: .low), camera()],
                "180p30 360p30"),
            AllocationCase(
                "high priority in a grid gets more", .grid, 1_700, [camera(), camera(priority: .high)],
                "360p30 720p15"),
            AllocationCase(
                "priority beats speaking", .presentation, 1_800, [camera(priority: .high), camera(dominant: true)],
                "720p30 180p30"),
            AllocationCase(
                "a screen comes before the speaker", .presentation, 1_500, [camera(dominant: true), screen()],
                "180p30 1080p30"),
            AllocationCase(
                "C8: one video allowed: the speaker's", .grid, 5_000, videos: 1,
                [camera(), camera(dominant: true), camera()], "- 720p30 -", why: "limit best limit"),
            AllocationCase(
                "C8: one video allowed: the pinned one", .grid, 5_000, videos: 1,
                [camera(pinned: true), camera(dominant: true)], "720p30 -", why: "best limit"),
            AllocationCase(
                "C8: two videos allowed: the pinned one and the speaker's", .grid, 5_000, videos: 2,
                [camera(), camera(dominant: true), camera(pinned: true)], "- 720p30 720p30", why: "limit best best"),
            AllocationCase("C8: none allowed", .grid, 5_000, videos: 0, [camera()], "-", why: "limit"),
            AllocationCase(
                "C8: hidden ones take no place", .grid, 5_000, videos: 1, [camera(blocked: .hidden), camera()],
                "- 720p30", why: "blocked best"),
        ])
    func importance(_ line: AllocationCase) { Self.check(line) }

    @Test(
        "H2: a video keeps its size in too few frames while those that look smooth nearly fit",
        arguments: [
            AllocationCase("has too few", 270, [camera(at: (1, 1), mayThin: true)], "360p8", why: "bandwidth"),
            AllocationCase("stays so with less", 242, [camera(at: (1, 0), mayThin: true)], "360p8"),
            AllocationCase("until those do not fit either", 237, [camera(at: (1, 0), mayThin: true)], "180p30"),
            AllocationCase("becomes smaller where it may not", 270, [camera(at: (1, 1))], "180p30"),
            AllocationCase("or where too few do not fit", 230, [camera(at: (1, 1), mayThin: true)], "180p30"),
            AllocationCase(
                "or where a third of what is sent is missing", 330, [camera(at: (1, 2), mayThin: true)], "180p30"),
            AllocationCase("does not rise to a larger size so", 300, [camera(at: (0, 2), mayThin: true)], "180p30"),
            AllocationCase(
                "has the smooth ones back while it may not rise", 900,
                [camera(at: (1, 0), mayRise: false, mayThin: true, mayRegain: true)], "360p15", why: "settling"),
            AllocationCase(
                "where they fit, without more", 351,
                [camera(at: (1, 0), mayRise: false, mayThin: true, mayRegain: true)], "360p15"),
            AllocationCase(
                "and what others have leaves room", 1_250,
                [
                    camera(at: (1, 0), mayRise: false, mayThin: true, mayRegain: true),
                    camera(at: (2, 1)),
                ], "360p8 720p15"
            ).atEase,
            AllocationCase(
                "also when the time is over", 351, [camera(at: (1, 0), mayRise: false, mayRegain: true)], "360p15"),
            AllocationCase(
                "but no larger size", 900, [camera(at: (0, 2), mayRise: false, mayRegain: true)], "180p30"),
            AllocationCase(
                "not at once", 900, [camera(at: (1, 0), mayRise: false, mayThin: true)], "360p8", why: "settling"),
            AllocationCase(
                "not where half of the frames look smooth and are the fewest", 280,
                [camera(Offers.wavering, at: (1, 1), mayThin: true)], "180p27"),
            AllocationCase(
                "not where a policy is the limit", 5_000, cap: 270, [camera(at: (1, 1), mayThin: true)], "180p30",
                why: "capped"),
            AllocationCase(
                "not where the fewest look like stills", 110, [camera(Offers.slow, at: (1, 1), mayThin: true)], "180p15"
            ),
            AllocationCase(
                "also where too few cost less than the smaller size", 155,
                [camera(Offers.dear, at: (1, 1), mayThin: true)], "360p8"),
            AllocationCase(
                "of two, one keeps what it has", 520,
                [camera(at: (1, 1), mayThin: true), camera(at: (1, 1), mayThin: true)], "360p15 180p30"),
            AllocationCase(
                "another video has its small steps first", 430, [camera(), camera(at: (1, 1), mayThin: true)],
                "180p30 360p8"),
        ])
    func thinning(_ line: AllocationCase) { Self.check(line) }

    @Test("A video becomes smaller at once where others in its subscriber's network watch it too")
    func thinningInANetwork() {
        let line = AllocationCase(
            "", 430, [camera(at: (1, 1), mayThin: true), camera(at: (1, 1), mayThin: true)], "")
        let sizes = [[], [0], [1], [0, 1]].map { shared in
            Allocation.decide(line.requests, under: line.rules) { shared.contains($0) }.map { shown($0.layer) }
        }
        #expect(sizes == [["360p8", "180p30"], ["180p30", "360p8"], ["360p8", "180p30"], ["180p30", "180p30"]])
    }

    @Test(
        "H8, A10: a screen keeps its size and loses frames",
        arguments: [
            AllocationCase("40 % of the demand", .collaboration, 1_080, [camera(), screen()], "180p30 1080p15"),
            AllocationCase("alone with plenty", .collaboration, 2_000, [screen()], "1080p30", why: "best"),
            AllocationCase("alone with less", .collaboration, 900, [screen()], "1080p15", why: "bandwidth"),
            AllocationCase("alone with little", .collaboration, 450, [screen()], "1080p5", why: "bandwidth"),
            AllocationCase("text as detail", .collaboration, 450, [screen(hint: .text)], "1080p5"),
            AllocationCase(
                "a film that is shared: motion", .collaboration, 1_000, [screen(Offers.film, hint: .motion)],
                "720p24"),
            AllocationCase(
                "the small size only when the large one does not fit", .collaboration, 430,
                [screen(Offers.screenSimulcast)], "540p5"),
            AllocationCase(
                "the large size before more frames of the small one", .collaboration, 450,
                [screen(Offers.screenSimulcast)], "1080p5"),
            AllocationCase(
                "no camera above its lowest while a screen waits", .collaboration, 390, [camera(), screen()],
                "180p8 -", why: "yields shortage"),
            AllocationCase(
                "a screen does not wait for a camera's second step", .collaboration, 480, [camera(), screen()],
                "180p8 1080p5"),
        ])
    func screens(_ line: AllocationCase) { Self.check(line) }

    @Test(
        "H8, H9: keeping a layer needs less bandwidth than rising to it",
        arguments: [
            AllocationCase("stays without the margin", 1_510, [camera(at: (2, 2))], "720p30"),
            AllocationCase("stays a little over the estimate", 1_430, [camera(at: (2, 2))], "720p30"),
            AllocationCase("steps down when it is too much", 1_420, [camera(at: (2, 2))], "720p15"),
            AllocationCase("does not rise without the margin", 1_640, [camera(at: (2, 1))], "720p15"),
            AllocationCase("rises with it", 1_650, [camera(at: (2, 1))], "720p30"),
            AllocationCase(
                "a failed attempt doubles the margin", 1_790, [camera(at: (2, 1), failed: failed(2, 2, 1))], "720p15"),
            AllocationCase("which may be there", 1_800, [camera(at: (2, 1), failed: failed(2, 2, 1))], "720p30"),
            AllocationCase("many treble it, no more", 1_950, [camera(at: (2, 1), failed: failed(2, 2, 9))], "720p30"),
            AllocationCase(
                "what it took when it failed", 1_910, [camera(at: (2, 1), failed: failed(2, 2, 1, at: 1_600))], "720p15"
            ),
            AllocationCase(
                "and its margin", 1_920, [camera(at: (2, 1), failed: failed(2, 2, 1, at: 1_600))], "720p30"),
            AllocationCase(
                "too soon for another attempt", 5_000, [camera(at: (2, 1), failed: failed(2, 2, 1, barred: true))],
                "720p15", why: "settling"),
            AllocationCase(
                "what did not fail does not wait for it", 1_200,
                [camera(at: (0, 2), failed: failed(2, 2, 3, barred: true))], "720p15"),
            AllocationCase(
                "a queue that empties is no second reason", 880, [camera(at: (2, 1), draining: true)], "720p15"),
            AllocationCase("a link that broke in is", 860, [camera(at: (2, 1), draining: true)], "360p30"),
            AllocationCase(
                "nor is the keyframe that it began with", 905, [camera(at: (2, 1), beginning: true)], "720p15"),
            AllocationCase("without one it is a reason", 905, [camera(at: (2, 1))], "360p30"),
            AllocationCase("a link that does not carry it is", 870, [camera(at: (2, 1), beginning: true)], "360p30"),
            AllocationCase(
                "keeps its size while rates waver", 511, [camera(Offers.wavering, at: (1, 0))], "360p13",
                why: "bandwidth"),
            AllocationCase(
                "waits after a step down", 5_000, [camera(at: (1, 2), mayRise: false)], "360p30", why: "settling"),
            AllocationCase("but steps down at once", 200, [camera(at: (1, 2), mayRise: false)], "180p30"),
            AllocationCase(
                "of equals, who has the layer keeps it", 1_010, [camera(), camera(at: (1, 2))], "360p15 360p30"),
            AllocationCase(
                "nor does it yield to one that costs a hundredth less", 900,
                [camera(Offers.cheaper, at: (1, 1)), camera(at: (1, 2))], "360p15 360p30"),
            AllocationCase(
                "which does not rise beside it without the margin", 1_010,
                [camera(Offers.cheaper, at: (1, 1)), camera(at: (1, 2))], "360p15 360p30"),
            AllocationCase(
                "and does with it", 1_050, [camera(Offers.cheaper, at: (1, 1)), camera(at: (1, 2))], "360p30 360p30"),
            AllocationCase(
                "a layer twice as large yields to it", 1_300, [camera(at: (0, 2)), camera(at: (2, 1))],
                "360p30 360p30"),
            AllocationCase("a layer that vanished is no claim", 5_000, [camera(Offers.single, at: (2, 2))], "720p30"),
        ])
    func hysteresis(_ line: AllocationCase) { Self.check(line) }

    @Test(
        "H8, B13, B14: caps, and the policy when even the lowest layer does not fit",
        arguments: [
            AllocationCase("a cap binds like the link", 5_000, cap: 600, [camera()], "360p30", why: "capped"),
            AllocationCase(
                "a cap above the estimate does not", 600, cap: 5_000, [camera()], "360p30", why: "bandwidth"),
            AllocationCase("a cap has no slack", 5_000, cap: 490, [camera(at: (1, 2))], "360p15", why: "capped"),
            AllocationCase("B14: viewers of 300 kbit/s get the low layer", 300, [camera()], "180p30"),
            AllocationCase("B14: or are paused", 300, [camera(Offers.single)], "-", why: "shortage"),
            AllocationCase(
                "B14: or get more than their link carries", 300, shortage: .oversend(.kilobitsPerSecond(300)),
                [camera(Offers.single)], "720p30", why: "oversent"),
            AllocationCase(
                "up to the amount", 290, shortage: .oversend(.kilobitsPerSecond(300)), [camera(Offers.single)],
                "-", why: "shortage"),
            AllocationCase(
                "oversending stops at the lowest step", 50, shortage: .oversend(.kilobitsPerSecond(1_000)),
                [camera()], "180p8", why: "oversent"),
            AllocationCase(
                "a cap is not oversent", 5_000, cap: 300, shortage: .oversend(.kilobitsPerSecond(1_000)),
                [camera(Offers.single)], "-", why: "shortage"),
            AllocationCase(
                "below the cap the estimate is", 50, cap: 700, shortage: .oversend(.kilobitsPerSecond(1_000)),
                [camera(Offers.single)], "720p30", why: "oversent"),
            AllocationCase(
                "the amount is for all together", 100, shortage: .oversend(.kilobitsPerSecond(100)),
                [camera(), camera(), camera()], "180p8 180p8 -"),
            AllocationCase(
                "a screen that is oversent does not wait", .collaboration, 300,
                shortage: .oversend(.kilobitsPerSecond(200)), [camera(), screen()], "180p8 1080p5"),
        ])
    func limits(_ line: AllocationCase) { Self.check(line) }

    @Test(
        "H9: without a sign of congestion no flowing layer is reduced, and no layer beyond the estimate starts",
        arguments: [
            AllocationCase(
                "a picture that outgrows the estimate goes on", 300, [camera(Offers.single, at: (0, 0))], "720p30"
            )
            .atEase,
            AllocationCase("in its layer", 900, [camera(at: (2, 2))], "720p30").atEase,
            AllocationCase("a new one waits", 300, [camera(Offers.single)], "-", why: "shortage").atEase,
            AllocationCase("nobody rises for it", 900, [camera(at: (1, 2))], "360p30", why: "bandwidth").atEase,
            AllocationCase(
                "nor at the expense of what flows, for costing a hundredth less", 2_300,
                [camera(Offers.cheaper, at: (1, 2)), camera(at: (2, 2))], "360p30 720p30"
            ).atEase,
            AllocationCase(
                "a cap binds all the same", 5_000, cap: 490, [camera(at: (1, 2))], "360p15", why: "capped"
            ).atEase,
            AllocationCase(
                "a newcomer gets what the estimate has left", 700, [camera(at: (1, 2)), camera()], "360p30 180p30"
            ).atEase,
        ])
    func atEase(_ line: AllocationCase) { Self.check(line) }

    @Test(
        "H9: no video rises to the sum that the path did not carry, later only with more headroom; what is sent stays"
    )
    func failedSums() {
        let rising = [camera(at: (1, 2)), camera(at: (0, 2))], sent = [camera(at: (1, 2)), camera(at: (1, 2))]
        let beginning = [camera(at: (1, 2)), camera()]
        func outcome(_ requests: [AllocationRequest], on kilobits: Int64, most: Int64, barred: Bool) -> String {
            let line = AllocationCase("", kilobits, requests, "")
            var rules = line.rules
            rules.failedSum = AllocationRules.FailedSum(
                most: .kilobitsPerSecond(most), isBarred: barred, attempts: 1)
            return Allocation.decide(line.requests, under: rules)
                .map { "\(shown($0.layer)) \(word($0.reason))" }.joined(separator: ", ")
        }
        #expect(outcome(rising, on: 1_100, most: 800, barred: true) == "360p30 bandwidth, 180p30 settling")
        #expect(outcome(rising, on: 1_100, most: 850, barred: true) == "360p30 bandwidth, 360p15 settling")
        #expect(outcome(rising, on: 1_099, most: 800, barred: false) == "360p30 bandwidth, 360p15 settling")
        #expect(outcome(rising, on: 1_100, most: 800, barred: false) == "360p30 bandwidth, 360p30 bandwidth")
        #expect(outcome(sent, on: 1_100, most: 600, barred: true) == "360p30 bandwidth, 360p30 bandwidth")
        #expect(outcome(beginning, on: 1_100, most: 600, barred: true) == "360p30 bandwidth, 360p30 bandwidth")
    }

    @Test("H8: the reason states the required and the available bandwidth")
    func reasons() throws {
        let line = AllocationCase("", 700, [camera()], "")
        let decision = try #require(Allocation.decide(line.requests, under: line.rules).first)
        #expect(decision.reason == .bandwidth(needed: .kilobitsPerSecond(1_050), available: .kilobitsPerSecond(700)))
        #expect(decision.next?.height == 720)
    }

    @Test("What a subscriber prefers of a video is within its limits: no more is probed for, or reported as wanted")
    func preferred() {
        let requests = [
            camera(), camera(height: 180), camera(spatial: 1), camera(frames: 15), camera([]),
        ]
        #expect(requests.map(\.preferredBitrate.kilobitsPerSecond) == [1_500, 150, 500, 1_050, 0])
    }
}
