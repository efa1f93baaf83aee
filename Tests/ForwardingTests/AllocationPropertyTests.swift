import Forwarding
import MediaControl
import Primitives
import Testing

/// What holds for every allocation, tried on random ones; the seed of a failure is printed.
@Suite("Allocation: properties")
struct AllocationPropertyTests {
    @Test(
        "H8: the budget is kept, none is left out that fits beside the others' least, a larger budget never gives less",
        arguments: 0..<400)
    func invariants(seed: UInt64) {
        var random = RandomSource(seed: seed)
        let mode = AllocationRules.Mode.allCases[Int(random.next() % 3)]
        let requests = (0..<(1 + Int(random.next() % 12))).map { request($0, &random) }
        let budget = Int64(random.next() % 6_000)
        let rules = AllocationRules(mode: mode, estimate: .kilobitsPerSecond(budget))
        let decisions = Allocation.decide(requests, under: rules)

        let spent = decisions.compactMap(\.layer).map(\.bitrate.kilobitsPerSecond).reduce(0, +)
        #expect(Double(spent) <= Double(budget) * (1 + Allocation.staySlack), "seed \(seed)")
        #expect(decisions == Allocation.decide(requests, under: rules), "seed \(seed)")

        let more = Allocation.decide(
            requests, under: AllocationRules(mode: mode, estimate: .kilobitsPerSecond(budget + 20_000)))
        for (less, rich) in zip(decisions, more) where less.layer != nil {
            #expect(rich.layer != nil && rich.layer!.bitrate >= less.layer!.bitrate, "seed \(seed)")
        }
        for decision in more { #expect([.best, .asPreferred].contains(decision.reason), "seed \(seed)") }

        // Whoever has nothing would not fit beside the least of the others either: nobody rose in its place.
        let lowest = requests.map { least(of: $0) }
        let base = zip(lowest, decisions).filter { $0.1.layer != nil }.map(\.0).reduce(0, +)
        for (own, decision) in zip(lowest, decisions) where decision.layer == nil {
            #expect(base + own > budget, "seed \(seed)")
        }

        let waiting = zip(requests, decisions).contains { request, decision in
            if case .shortage = decision.reason { request.isScreen } else { false }
        }
        if waiting {
            for (request, decision) in zip(requests, decisions) where !request.isScreen && decision.layer != nil {
                #expect(decision.layer?.point.spatial == request.offers.map(\.point.spatial).min(), "seed \(seed)")
            }
        }
    }

    /// What a request gets first, in kbit/s: without any bandwidth the decision says how much is missing.
    private func least(of request: AllocationRequest) -> Int64 {
        let decision = Allocation.decide([request], under: AllocationRules(estimate: .zero)).first
        guard case .shortage(let needed, _)? = decision?.reason else {
            Issue.record("\(String(describing: decision))")
            return 0
        }
        return needed.kilobitsPerSecond
    }

    private func request(_ index: Int, _ random: inout RandomSource) -> AllocationRequest {
        var request =
            switch random.next() % 5 {
            case 0: screen(random.next() % 2 == 0 ? Offers.screen : Offers.screenSimulcast)
            case 1: camera(Offers.single)
            case 2: camera(Offers.film)
            default: camera()
            }
        request.id = SubscriptionID(UInt64(index + 1))
        request.viewerPriority = TrackPriority.allCases[Int(random.next() % 3)]
        request.isPinned = random.next() % 8 == 0
        request.isDominant = random.next() % 8 == 0
        if random.next() % 3 == 0 { request.limits.height = 90 << Int(random.next() % 4) }
        return request
    }
}
