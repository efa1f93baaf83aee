import MediaControl
import Primitives

/// Divides a peer's bandwidth among its video subscriptions: a pure function, called when the estimate, the layers or the preferences change.
///
/// 1. Eligibility: blocked and surplus subscriptions are left out.
/// 2. Base: in order of importance, each subscription gets its lowest step.
/// 3. Upgrades: one step at a time goes to the subscription whose next step costs least per weight, until nothing fits; of steps that cost about as much,
///    those that are sent come first. With weights of one class that is max-min fairness over bitrates; in presentation mode an earlier subscription
///    outweighs all later ones.
///
/// Staying on a step needs only its bitrate; rising to one must fit with `riseMargin` to spare, and with more after attempts that failed, so
/// that a layer whose bitrate fluctuates does not flap. Frames that a video lost to keep its size come back without a margin.
public enum Allocation {
    /// Share of a step's bitrate that must be free beyond it before a rise: VP8's rate varies by a tenth from second to second (measured).
    static let riseMargin = 0.1
    /// Share of the budget by which a sum that is already being sent may exceed it before a subscription steps down: the estimate
    /// itself varies by as much on a steady link (85 to 105 % of it).
    public static let staySlack = 0.05
    /// The same just after a step down: an estimate that falls further while the queue drains does not cause a second step down. It fell to 0.9 of the
    /// lower step's rate (Chromium, 600 kbit/s), and falls by as much again at worse moments.
    static let drainingSlack = 0.2
    /// Additional share of its own bitrate by which a layer that has just become larger may exceed the budget: its keyframe inflates the measured rate
    /// by a tenth. Twice this share let subscribers behind one bottleneck displace each other.
    static let beginningSlack = 0.1
    /// A step that is sent counts as this share of its price, so that a rise comes before it only if it costs a fifth less: rates of equal encoders differ by
    /// some percent from second to second. Otherwise the cheapest of several equal videos would rise first on a full path, beyond the budget within the slack
    /// of the steps that stay, or in place of one of them.
    static let sentPrice = 0.8
    /// Share of a video's current bitrate that must be available for it to keep its size with too few frames: after a fall to 500 kbit/s the estimate left 75
    /// to 93 % of it until it had recovered (Chromium, ten runs). A link that falls to a third fills its queue at once: too few frames of the large size,
    /// although they fit, froze the video for 1.1 s instead of 0.3 (2.5 to 0.8 Mbit/s in virtual time).
    static let edge = 0.7

    /// One decision for each request, in the order of the requests. Equal requests give equal decisions.
    ///
    /// `sharesNetwork`: whether other subscribers of a request's video are in the same network, and so probably behind the same bottleneck; called only where
    /// it matters. Such a video becomes smaller at once: too few frames of its size cost the others more (measured: of 40 runs of five viewers behind one
    /// bottleneck, 13 had several keyframe requests within 2 s, instead of 8).
    public static func decide(
        _ requests: [AllocationRequest], under rules: AllocationRules,
        sharesNetwork: (_ position: Int) -> Bool = { _ in false }
    ) -> [AllocationDecision] {
        let decisions = decideAlone(requests, under: rules)
        guard decisions.indices.contains(where: { decisions[$0].isThinned && sharesNetwork($0) }) else {
            return decisions
        }
        var others = requests
        for position in others.indices where others[position].mayThin && sharesNetwork(position) {
            others[position].mayThin = false
        }
        return decideAlone(others, under: rules)
    }

    private static func decideAlone(_ requests: [AllocationRequest], under rules: AllocationRules)
        -> [AllocationDecision]
    {
        var round = AllocationRound(requests, rules)
        round.giveEverybodySomething()
        round.raise()
        return round.decisions
    }
}

/// State of one allocation.
private struct AllocationRound {
    private struct Entry {
        let request: Int
        let ladder: Ladder
        let offersMore: Bool
        /// Step of the ladder that is forwarded now; -1 for none.
        let current: Int
        let weight: Double
        var step = -1
        var reason: DecisionReason
    }

    private let requests: [AllocationRequest]
    private let rules: AllocationRules
    /// Most important first.
    private var entries: [Entry] = []
    private var spent: Int64 = 0
    private var screenWaits = false
    private var blocked: [Int: DecisionReason] = [:]

    init(_ requests: [AllocationRequest], _ rules: AllocationRules) {
        self.requests = requests
        self.rules = rules
        block()
        for index in Importance.order(of: requests, mode: rules.mode) where blocked[index] == nil { admit(index) }
    }

    /// Finds the subscriptions that get nothing whatever the bandwidth. When there are too many, the dominant speaker stays even in a grid.
    private mutating func block() {
        var count = 0
        for index in Importance.order(of: requests, mode: .collaboration) {
            if let reason = requests[index].blocked {
                blocked[index] = .blocked(reason)
            } else if !requests[index].offers.contains(where: { $0.bitrate > .zero }) {
                blocked[index] = .blocked(.notSent)
            } else if let limit = rules.maximumVideos, count >= limit {
                blocked[index] = .tooManyVideos(limit: limit)
            } else {
                count += 1
            }
        }
    }

    private mutating func admit(_ index: Int) {
        let request = requests[index]
        let ladder = Ladder(
            request.offers, hint: request.hint, limits: request.limits,
            keeping: request.mayThin && !rules.isCapped ? request.current?.spatial : nil)
        guard let top = ladder.steps.last else { return }
        let current = request.current.flatMap { ladder.index(of: $0) } ?? -1
        let unlimited = Ladder(request.offers, hint: request.hint, limits: ViewerLimits()).steps.last
        entries.append(
            Entry(
                request: index, ladder: ladder, offersMore: unlimited != top, current: current,
                weight: Importance.weight(of: request, mode: rules.mode), reason: .best))
    }

    // MARK: - Steps

    mutating func giveEverybodySomething() {
        for index in entries.indices {
            let lowest = entries[index].ladder.steps[0].bitrate.bitsPerSecond
            let over = spent + lowest - limit(for: 0, of: entries[index])
            if over <= 0 {
                entries[index].step = 0
                spent += lowest
            } else if over <= rules.oversend.bitsPerSecond, spent + lowest <= rules.cap?.bitsPerSecond ?? .max {
                entries[index].step = 0
                entries[index].reason = .oversent(by: .bitsPerSecond(over))
                spent += lowest
            } else {
                entries[index].reason = .shortage(
                    needed: .bitsPerSecond(lowest), available: .bitsPerSecond(rules.budget.bitsPerSecond - spent))
                if requests[entries[index].request].isScreen { screenWaits = true }
            }
        }
    }

    mutating func raise() {
        var open = entries.indices.filter { entries[$0].step >= 0 }
        while let index = next(among: open) {
            if let obstacle = obstacle(to: index) {
                entries[index].reason = obstacle
                open.removeAll { $0 == index }
            } else {
                spent += cost(of: entries[index].step + 1, for: entries[index])
                entries[index].step += 1
            }
        }
    }

    /// The entry to raise next: the one whose next step costs least per weight, where a step that is sent already counts less; among equals an entry that
    /// already has the step, then the more important one.
    private func next(among open: [Int]) -> Int? {
        if rules.mode == .presentation { return open.first }
        return open.min { a, b in
            let left = entries[a], right = entries[b]
            let costs = (price(of: left), price(of: right))
            if costs.0 != costs.1 { return costs.0 < costs.1 }
            let has = (left.current > left.step, right.current > right.step)
            return has.0 != has.1 ? has.0 : a < b
        }
    }

    private func price(of entry: Entry) -> Double {
        // The thinned step costs as much as the step above it, for which it exists.
        guard let next = entry.ladder.step(above: entry.step) else { return 0 }  // At the top: closed at once.
        let price = Double(next.bitrate.bitsPerSecond) / entry.weight
        return entry.current > entry.step ? price * Allocation.sentPrice : price
    }

    /// How much more an entry costs on a step than on its current one.
    private func cost(of step: Int, for entry: Entry) -> Int64 {
        entry.ladder.steps[step].bitrate.bitsPerSecond - entry.ladder.steps[entry.step].bitrate.bitsPerSecond
    }

    /// Why an entry may not rise; nil when it may.
    private func obstacle(to index: Int) -> DecisionReason? {
        let entry = entries[index]
        let request = requests[entry.request]
        guard entry.step + 1 < entry.ladder.steps.count else {
            if case .oversent = entry.reason { return entry.reason }
            return entry.offersMore ? .asPreferred : .best
        }
        if case .oversent = entry.reason { return entry.reason }
        if screenWaits, !request.isScreen { return .yieldsToScreen }
        let next = entry.ladder.steps[entry.step + 1]
        let isBarred = !request.mayRise || request.failed.map { $0.isBarred && $0.includes(next) } ?? false
        if isBarred, entry.step >= entry.current, entry.current >= 0, !regains(entry.step + 1, entry) {
            return .settling
        }
        let own = entry.ladder.steps[entry.step].bitrate.bitsPerSecond
        let available = Bitrate.bitsPerSecond(rules.budget.bitsPerSecond - spent + own)
        let aim = entry.ladder.step(above: entry.step) ?? next
        if fits(entry.step + 1, of: entry), next == aim || isWorthThinning(entry, with: available) {
            return nil
        }
        if rules.failedSum != nil, available >= request.room(for: aim) { return .settling }
        return rules.isCapped
            ? .capped(needed: aim.bitrate, available: available)
            : .bandwidth(needed: aim.bitrate, available: available)
    }

    private func fits(_ step: Int, of entry: Entry) -> Bool {
        spent + cost(of: step, for: entry) <= limit(for: step, of: entry)
    }

    /// Whether to move to the thinned step, which is the next: the entry is on it already, the step above it fits too, or little is missing.
    private func isWorthThinning(_ entry: Entry, with available: Bitrate) -> Bool {
        let sent = entry.ladder.steps[max(entry.current, 0)].bitrate
        return entry.current == entry.step + 1 || fits(entry.step + 2, of: entry)
            || Double(available.bitsPerSecond) >= Double(sent.bitsPerSecond) * Allocation.edge
    }

    /// Whether a step only restores the frames that were left out to keep the size.
    private func regains(_ step: Int, _ entry: Entry) -> Bool {
        let request = requests[entry.request], steps = entry.ladder.steps
        return request.mayRegainFrames && step == entry.current + 1
            && steps[step].point.spatial == request.current?.spatial
    }

    /// The maximum sum at which an entry may be on a step.
    private func limit(for step: Int, of entry: Entry) -> Int64 {
        let budget = rules.budget.bitsPerSecond
        if step <= entry.current {
            guard rules.isCongested else { return rules.cap?.bitsPerSecond ?? .max }
            guard !rules.isCapped else { return budget }
            let request = requests[entry.request]
            let slack = Double(budget) * (request.isDraining ? Allocation.drainingSlack : Allocation.staySlack)
            let own = request.isBeginning ? Double(request.currentBitrate.bitsPerSecond) * Allocation.beginningSlack : 0
            return budget + Int64(slack + own)
        }
        // A first layer, however small, is worth more than the margin.
        guard step > 0 else { return budget }
        // Frames that are restored were sent a moment ago.
        guard !regains(step, entry) else { return budget - flowing(besides: entry) }
        let offer = entry.ladder.steps[step]
        let spare = requests[entry.request].room(for: offer).bitsPerSecond - offer.bitrate.bitsPerSecond
        let most = budget - spare - flowing(besides: entry)
        // A video that begins has not failed.
        guard let failed = rules.failedSum, entry.current >= 0 else { return most }
        let sent = sent(besides: entry)
        let beyond = failed.isBarred ? 0 : budget - spare * Int64(1 + min(failed.attempts, 2)) - sent
        return max(min(most, failed.most.bitsPerSecond - sent), beyond)
    }

    /// The bitrate that a rise must leave to others: without congestion nothing that they are sent is withdrawn for it.
    private func flowing(besides entry: Entry) -> Int64 { rules.isCongested ? 0 : sent(besides: entry) }

    /// The bitrate already sent to other subscriptions of at least this weight beyond their steps so far.
    private func sent(besides entry: Entry) -> Int64 {
        entries.reduce(0) { sum, other in
            guard other.current > other.step, other.step >= 0, other.weight >= entry.weight else { return sum }
            let steps = other.ladder.steps
            return sum + steps[other.current].bitrate.bitsPerSecond - steps[other.step].bitrate.bitsPerSecond
        }
    }

    // MARK: - Result

    var decisions: [AllocationDecision] {
        var result = requests.enumerated().map { index, request in
            AllocationDecision(id: request.id, layer: nil, reason: blocked[index] ?? .blocked(.notSent), next: nil)
        }
        for entry in entries {
            result[entry.request].layer = entry.step >= 0 ? entry.ladder.steps[entry.step] : nil
            result[entry.request].isThinned =
                result[entry.request].layer.map { $0.point == entry.ladder.thinned } ?? false
            result[entry.request].reason = entry.reason
            result[entry.request].next = entry.ladder.step(above: entry.step)
        }
        return result
    }
}
