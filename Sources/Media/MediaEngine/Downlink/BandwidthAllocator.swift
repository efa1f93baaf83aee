import Forwarding
import MediaControl
import Primitives

/// Divides one peer's path among its videos: when to evaluate, what is decided, what to probe for, and what is recorded.
///
/// ```text
/// estimate, layers, preferences change -> look(at:)     decide -> layers' bounds -> changes: keyframes to request, demand to update
///                                                              -> demand on the path: bitrate of the next step
/// ```
/// The decision itself is `Allocation.decide`, a pure function.
struct BandwidthAllocator {
    private(set) var policy = DownlinkPolicy()
    /// When the next evaluation is due.
    private(set) var nextLook = MonotonicTime.distantFuture
    /// Another evaluation that was requested, after that.
    private var laterLook = MonotonicTime.distantFuture
    /// Every video had its preferred layer at the last evaluation, and nothing changed since.
    private var isCalm = false
    /// The estimate at the last evaluation; nil: no limit.
    private var estimate: Bitrate?
    /// The bitrate of the selected layers, and of everything preferred, audio included.
    private var allocated = Bitrate.zero
    private var wanted = Bitrate.zero
    /// The part of audio in both.
    private var audioBitsPerSecond = 0.0
    private var sums = SumHistory()
    private var decisions = DecisionLog()
    private var estimates = EstimateLog()

    /// Layers' rates are measured over a second; four evaluations in that time suffice unless an estimate changes.
    private static let interval = TimeSpan.milliseconds(250)
    /// If every video has its preferred layer, only the growth of a layer can change that.
    private static let calmInterval = TimeSpan.seconds(1)
    /// An estimate that changes by more than this is evaluated at once: every excess packet waits in a queue.
    private static let tolerance = 0.05
    /// Packet overhead beyond the measured rates of layers: IP and UDP headers, protection and the server's own extensions, 50 of
    /// some 1,000 bytes.
    private static let overhead = 1.05
    /// A queue on the path this long outlasts a publisher's usual answer with a keyframe, a round trip and a frame: until then enough
    /// frames are in transit to be shown.
    private static let fullQueue = TimeSpan.milliseconds(75)
    /// Multiple of the lowest step's bitrate that must fit before a video that is sent beyond the estimate counts as fitting.
    private static let oversentMargin = 1.15

    /// Bytes of memory besides the struct itself.
    var memoryBytes: Int { decisions.memoryBytes + estimates.memoryBytes }

    // MARK: - When

    /// Schedules an evaluation at `moment` or earlier; true when that is sooner than planned.
    mutating func look(at moment: MonotonicTime) -> Bool {
        isCalm = false
        guard moment < nextLook else {
            // An earlier evaluation would not yet see what this one is for, such as a layer that has just begun.
            laterLook = min(laterLook, moment)
            return false
        }
        nextLook = moment
        return true
    }

    /// Whether a new estimate requires an immediate evaluation.
    func isHastened(by new: Bitrate?) -> Bool {
        guard let new else { return false }
        guard let estimate else { return true }
        let ratio = Double(new.bitsPerSecond) / Double(max(estimate.bitsPerSecond, 1))
        return ratio < 1 - Self.tolerance || ratio > 1 + Self.tolerance
    }

    /// Nothing can be sent to the peer now: the event that changes this schedules an evaluation.
    mutating func suspend() { nextLook = .distantFuture }

    /// Sets the policy; true when the limit on the number of videos changed.
    mutating func setPolicy(_ policy: DownlinkPolicy) -> Bool {
        let isOtherCount = policy.maximumVideos != self.policy.maximumVideos
        self.policy = policy
        return isOtherCount
    }

    // MARK: - Deciding

    /// Follow-up work of a decision, for one subscription.
    struct Change {
        /// Its index in the table.
        var subscription: Int
        /// A keyframe is needed to follow it.
        var needsStart: Bool
        /// It became or ceased to be a surplus video, so that its publisher may be asked for other layers.
        var changesDemand: Bool
        /// It is held for lack of bandwidth from now on, or no longer; nil: as before.
        var isHeld: Bool?
    }

    /// Divides the path among the subscriptions of `chain`; returns the follow-up work.
    mutating func decide(
        _ chain: SubscriptionChain, _ tables: borrowing Tables, over path: inout SendPath, at now: MonotonicTime
    ) -> [Change] {
        let condition = path.condition(at: now)
        if condition.isMeasured, let estimate = condition.estimate { estimates.note(estimate, at: now) }
        if isCalm, fitsWithRoom(chain, tables, estimate: path.estimate(at: now), at: now) {
            updateTotals(of: chain, tables)
            nextLook = now + Self.calmInterval
            return []
        }
        nextLook = .distantFuture
        if laterLook <= now { laterLook = .distantFuture }
        let input = AllocationInput(chain, tables, over: condition, at: now)
        guard !input.requests.isEmpty else {
            // Only audio: nothing more is in demand, whatever the last video lacked.
            estimate = path.estimate(at: now)
            setDemand(of: &path, by: [], for: input, isCapped: false, at: now)
            return []
        }
        // The start value applies if feedback is negotiated and nothing was sent yet.
        if condition.certainty == .unknown, input.expectsFeedback(tables) { path.expectFeedback() }
        estimate = path.estimate(at: now)
        let outcome = path.condition(at: now)
        var rules = self.rules(over: outcome, audioBitsPerSecond: input.audioBitsPerSecond)
        rules.failedSum = failedSum(of: input, over: outcome, at: now)
        var results = Allocation.decide(input.requests, under: rules) { position in
            tables.sharesNetwork(input.subscriptions[position])
        }
        let next = postpone(&results, of: input, tables, at: now)
        noteSum(of: results, for: input, tables, over: outcome, at: now)
        var changes: [Change] = []
        for (position, result) in results.enumerated() {
            let index = input.subscriptions[position]
            let change = apply(result, for: input.requests[position], to: index, tables, over: outcome, at: now)
            if let change { changes.append(change) }
        }
        setDemand(of: &path, by: results, for: input, isCapped: rules.isCapped, at: now)
        scheduleNext(after: results, at: now)
        nextLook = min(nextLook, next)
        return changes
    }

    /// Postpones changes of size to the moments that all subscribers of a track share; returns the first such moment.
    private func postpone(
        _ decisions: inout [AllocationDecision], of input: AllocationInput, _ tables: borrowing Tables,
        at now: MonotonicTime
    ) -> MonotonicTime {
        var next = MonotonicTime.distantFuture
        for (position, index) in input.subscriptions.enumerated() {
            let state = tables.subscriptions[index], track = tables.tracks[state.pointee.track]
            guard tables.isShared(state.pointee.track) else { continue }
            var growsAmongOthers = false
            let isPostponed = state.pointee.allocation.postpone(
                &decisions[position], for: input.requests[position], at: now
            ) { step in
                // Finding the group walks over all of the track's subscriptions.
                guard track.pointee.sizeChanges.isOpen(at: now) else { return false }
                let group = tables.group(ofSubscription: index)
                guard let step else { return track.pointee.sizeChanges.admitFall(in: group, at: now) }
                let isAdmitted = track.pointee.sizeChanges.admitRaise(by: step, in: group, at: now)
                growsAmongOthers = isAdmitted && group.map { $0.count > 1 } ?? false
                return isAdmitted
            }
            if growsAmongOthers {
                state.pointee.allocation.beginWithFewFrames(
                    &decisions[position], for: input.requests[position], at: now)
            }
            guard isPostponed else { continue }
            let moment = track.pointee.sizeChanges.next
            // The moment is now, but others became larger at it.
            next = min(next, moment > now ? moment : now + Self.interval)
        }
        return next
    }

    /// The sum that the path recently did not carry. A single video remembers its own steps.
    private mutating func failedSum(
        of input: AllocationInput, over path: PathCondition, at now: MonotonicTime
    ) -> AllocationRules.FailedSum? {
        if let moment = path.wrongFall { sums.forgive(moment) }
        let failed = sums.failedSum(on: path.estimate, at: now)
        return input.requests.count { $0.blocked == nil } > 1 ? failed : nil
    }

    /// Records the sum to which videos rise, or that a video falls because the path is full. A video that began a moment ago is only being fitted in.
    private mutating func noteSum(
        of decisions: [AllocationDecision], for input: AllocationInput, _ tables: borrowing Tables,
        over path: PathCondition, at now: MonotonicTime
    ) {
        var rises = false, falls = false
        var sum: Int64 = 0
        for (position, decision) in decisions.enumerated() {
            sum += decision.layer?.bitrate.bitsPerSecond ?? 0
            let state = tables.subscriptions[input.subscriptions[position]]
            guard let old = input.requests[position].current, !state.pointee.allocation.isBeingFitted(at: now) else {
                continue
            }
            if let new = decision.layer?.point, new >= old {
                rises = rises || new > old
            } else if decision.reason.isShort, !decision.isThinned {
                falls = true
            }
        }
        if falls, path.isCongested, !path.isSilent {
            sums.noteFall(at: now)
        } else if rises {
            sums.noteRise(to: .bitsPerSecond(sum), at: now)
        }
    }

    private mutating func scheduleNext(after decisions: [AllocationDecision], at now: MonotonicTime) {
        let isShort = decisions.contains { $0.reason.isShort }
        nextLook = min(now + (isShort ? Self.interval : Self.calmInterval), laterLook)
        // A video that is not sent yet may begin.
        isCalm =
            !isShort && laterLook == .distantFuture && !decisions.contains { $0.reason == .blocked(.notSent) }
    }

    /// Whether all videos, in their largest layers, need less than two thirds of the path: then there is nothing to decide, and
    /// this check allocates nothing.
    private func fitsWithRoom(
        _ chain: SubscriptionChain, _ tables: borrowing Tables, estimate: Bitrate?, at now: MonotonicTime
    ) -> Bool {
        guard policy.maximumBitrate == nil, policy.maximumVideos == nil else { return false }
        // The frame rate limit depends on the publisher's frame rate, whatever the path carries.
        guard !chain.contains(where: { $0.pointee.allocation.display.framesPerSecond != nil }) else { return false }
        guard let estimate else { return true }
        var total: Int64 = 0
        for state in chain {
            guard state.pointee.track >= 0 else { continue }
            let track = tables.tracks[state.pointee.track].pointee.track
            var most: Int64 = 0
            for layer in 0..<track.layerCount {
                most = max(most, track.layer(layer).pointee.bitrate(at: now).bitsPerSecond)
            }
            total &+= most
        }
        return total * 3 < estimate.bitsPerSecond * 2
    }

    private func rules(over path: PathCondition, audioBitsPerSecond: Double) -> AllocationRules {
        let budget =
            estimate.map { max(Double($0.bitsPerSecond) - audioBitsPerSecond, 0) / Self.overhead } ?? Self.unlimited
        return AllocationRules(
            mode: policy.mode,
            shortage: path.certainty == .guessed
                ? .oversend(.bitsPerSecond(Int64(Self.unlimited))) : policy.shortage,
            maximumVideos: policy.maximumVideos,
            estimate: .bitsPerSecond(Int64(budget)), cap: policy.maximumBitrate,
            isCongested: path.isCongested)
    }

    /// Bits per second that nothing exceeds.
    private static let unlimited = 1e12

    /// Puts a decision in force; nil if there is no follow-up work.
    private mutating func apply(
        _ decision: AllocationDecision, for request: AllocationRequest, to index: Int, _ tables: borrowing Tables,
        over path: PathCondition, at now: MonotonicTime
    ) -> Change? {
        let state = tables.subscriptions[index]
        let owner = tables.tracks[state.pointee.track]
        let record = DecisionRecord(
            time: now, subscription: decision.id, track: owner.pointee.id, layer: decision.layer, estimate: estimate,
            reason: decision.reason, next: decision.next)
        let wasSurplus = state.pointee.allocation.isSurplus, wasHeld = state.pointee.allocation.isHeld
        let isNew = state.pointee.allocation.apply(
            record, isThinned: decision.isThinned, costBefore: request.currentBitrate, over: path, at: now)
        guard isNew || state.pointee.subscription.isAwaitingBound else { return nil }
        if isNew { decisions.append(record) }
        let isLimited = estimate != nil && state.pointee.subscription.usesTransportSequence
        let bound = bound(by: decision, of: state.pointee.allocation.display, isLimited: isLimited)
        let needsStart = state.pointee.subscription.setBound(bound, track: owner.pointee.track, at: now)
        if needsStart, path.isCongested, path.queueDelay >= Self.fullQueue {
            state.pointee.subscription.endLarger(owner.pointee.track)
        }
        let change = Change(
            subscription: index, needsStart: needsStart,
            changesDemand: isNew && state.pointee.allocation.isSurplus != wasSurplus,
            isHeld: state.pointee.allocation.isHeld == wasHeld ? nil : !wasHeld)
        return change.needsStart || change.changesDemand || change.isHeld != nil ? change : nil
    }

    /// The bound that a decision sets for the subscription. `isLimited`: its path is measured.
    private func bound(by decision: AllocationDecision, of display: DisplayPreference, isLimited: Bool) -> LayerBound {
        switch decision.reason {
        // It may be a surplus video.
        case .blocked(.notSent) where policy.maximumVideos != nil: .undecided
        // Nothing was measured yet: start low if bandwidth may be short.
        case .blocked(.notSent): isLimited ? .upTo(LayerPoint(spatial: 0, temporal: .max)) : .unlimited
        // The subscription limits the size itself, but not the frame rate.
        case .asPreferred where display.framesPerSecond != nil:
            decision.layer.map { .upTo(LayerPoint(spatial: .max, temporal: $0.point.temporal)) } ?? .unlimited
        // The subscriber paused it: it is not held back by bandwidth.
        case .blocked(.paused): .unlimited
        // A larger layer that starts later is measured first.
        case .best, .asPreferred: isLimited ? .present : .unlimited
        case .blocked(.hidden), .shortage, .tooManyVideos: .nothing
        case .bandwidth, .capped, .settling, .yieldsToScreen, .oversent:
            decision.layer.map { .upTo($0.point) } ?? .nothing
        }
    }

    // MARK: - Probing

    /// `isCapped`: the policy's cap is the limit and the path is not, so that nothing beyond it is in demand, and no probes are sent.
    private mutating func setDemand(
        of path: inout SendPath, by decisions: [AllocationDecision], for input: AllocationInput, isCapped: Bool,
        at now: MonotonicTime
    ) {
        var own = 0.0, all = 0.0
        var rise: Double?
        for (decision, request) in zip(decisions, input.requests) {
            let cost = Double(decision.layer?.bitrate.bitsPerSecond ?? 0)
            let isShort = decision.reason.isShort && !isCapped
            own += cost
            all += isShort ? max(cost, Double(request.preferredBitrate.bitsPerSecond)) : cost
            guard isShort, let room = room(above: decision, cost: cost, for: request) else { continue }
            rise = min(rise ?? .infinity, room - cost)
        }
        let total = own * Self.overhead + input.audioBitsPerSecond
        audioBitsPerSecond = input.audioBitsPerSecond
        allocated = .bitsPerSecond(Int64(total))
        wanted = .bitsPerSecond(Int64(all * Self.overhead + input.audioBitsPerSecond))
        // All have their preferred layers while the estimate is lower, as after a keyframe's queue: without a probe it would stay low, and a video step down.
        let isDoubted = !decisions.isEmpty && !isCapped && estimate.map { Double($0.bitsPerSecond) < total } ?? false
        let next = rise.map { total + $0 * Self.overhead } ?? (isDoubted ? total : nil)
        path.setDemand(
            allocated: allocated, video: .bitsPerSecond(Int64(own * Self.overhead)),
            next: next.map { .bitsPerSecond(Int64($0)) }, wanted: wanted, at: now)
    }

    /// The bandwidth needed for the next step up, with margin; nil if there is none.
    private func room(above decision: AllocationDecision, cost: Double, for request: AllocationRequest) -> Double? {
        if case .oversent = decision.reason { return cost * Self.oversentMargin }
        guard let next = decision.next, Double(next.bitrate.bitsPerSecond) > cost else { return nil }
        return Double(request.room(for: next).bitsPerSecond)
    }

    // MARK: - Reports

    /// The allocated bitrate, and the bitrate of everything preferred; audio included.
    var totals: (allocated: Bitrate, wanted: Bitrate) { (allocated, wanted) }

    /// The same if all have what they prefer and nothing is decided: a video that its publisher has muted since then, or does not send, needs nothing.
    private mutating func updateTotals(of chain: SubscriptionChain, _ tables: borrowing Tables) {
        var video: Int64 = 0
        for state in chain where state.pointee.track >= 0 {
            let track = tables.tracks[state.pointee.track].pointee.track
            guard !track.isMuted, !track.isSilent else { continue }
            video &+= state.pointee.allocation.record?.layer?.bitrate.bitsPerSecond ?? 0
        }
        allocated = .bitsPerSecond(Int64(Double(video) * Self.overhead + audioBitsPerSecond))
        wanted = allocated
    }

    /// A report with only the recorded decisions and estimates, with ages as of `now`.
    func history(at now: MonotonicTime) -> DownlinkReport {
        var report = DownlinkReport()
        report.decisions = decisions.records(at: now)
        report.estimates = estimates.records(at: now)
        return report
    }
}
