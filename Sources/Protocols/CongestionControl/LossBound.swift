/// A limit on the rate by losses, where delay reveals nothing: policers and very short queues.
///
/// After libwebrtc's `LossBasedBweV2`: the link is modelled by a bandwidth and a share of packets that it loses at any rate. Of a few
/// candidate bandwidths, the one is chosen that makes the losses of the last seconds most likely. So random loss of a radio link,
/// the same at every rate, lowers nothing, and loss that grows with the rate does. Differences: windows by arrival of feedback, one Newton step
/// as there, and a larger share of loss may be attributed to the link, because retransmissions repair it and delay detects congestion first.
struct LossBound: Sendable {
    private struct Observation {
        var packets = 0.0
        var lost = 0.0
        /// Bits per second while these packets were sent.
        var rate = 0.0
        /// When the first of them was sent, microseconds.
        var since: Int64 = .max
    }

    private static let window = 20
    /// Microseconds of sending in one observation.
    private static let length: Int64 = 250_000
    private static let leastPackets = 5.0
    private static let decay = 0.9
    /// Maximum inherent loss of a link: 12 %, and more at low rates where one packet is much.
    private static let inherentOffset = 0.12
    private static let inherentBalance = 75_000.0
    private static let leastInherent = 0.001
    /// Candidates as shares of the present bandwidth; the last one is the delivered rate.
    private static let factors = [1.3, 1.02, 1.0, 0.95, 0.85, 0]

    private var observations = InlineArray<20, Observation>(repeating: Observation())
    private var count = 0
    private var position = 0
    private var open = Observation()
    /// The newest observations that are not evaluated yet, because their missing packets may still arrive.
    private var unsettled = 0
    private var openBytes = 0
    private var openLast: Int64 = .min
    private var inherent = 0.01
    private var bandwidth: Double?
    /// The share of packets lost over the window, newer ones weighted more.
    private(set) var averageLoss = 0.0

    init() {}

    /// The limit in bits per second; nil while losses require none.
    private(set) var limit: Double?

    /// Adds the outcome of one packet; `sent` in microseconds.
    mutating func add(_ size: Int, sent: Int64, isLost: Bool) {
        open.packets += 1
        if isLost { open.lost += 1 }
        openBytes += size
        open.since = min(open.since, sent)
        openLast = max(openLast, sent)
    }

    /// A packet reported as lost, sent at `sent`, arrived after all.
    mutating func recovered(sent: Int64) {
        guard sent < open.since else {
            open.lost = max(0, open.lost - 1)
            return
        }
        var observations = observations.mutableSpan
        var back = 1
        while back <= count {
            let index = (position + Self.window - back) % Self.window
            if sent >= observations[index].since {
                observations[index].lost = max(0, observations[index].lost - 1)
                return
            }
            back += 1
        }
    }

    /// Discards all observations (outage, another path).
    mutating func forget() { self = LossBound() }

    /// Discards all observations, because the path has carried `rate` since; `estimate` is what delay allows.
    mutating func lift(to rate: Double, estimate: Double) {
        self = LossBound()
        bandwidth = rate
        limit = rate < estimate * 0.999 ? rate : nil
    }

    /// Closes the observation when it is long enough; `estimate` is what delay allows, `delivered` the delivered rate. If delays vary, packets
    /// reported as lost may only be late: an observation is evaluated when the next one is complete, a quarter of a second later.
    mutating func update(estimate: Double, delivered: Double?, straying: Bool) {
        guard open.packets >= Self.leastPackets, openLast - open.since >= Self.length else { return }
        open.rate = Double(openBytes) * 8e6 / Double(max(openLast - open.since, 1))
        observations[position] = open
        position = (position + 1) % Self.window
        count = min(count + 1, Self.window)
        open = Observation()
        openBytes = 0
        openLast = .min
        unsettled = straying ? 1 : 0
        guard count > unsettled else { return }
        averageLoss = weighedLoss()
        choose(estimate: estimate, delivered: delivered)
    }

    private func weighedLoss() -> Double {
        var packets = 0.0, lost = 0.0, weight = 1.0
        let observations = observations.span
        for back in (1 + unsettled)...count {
            let seen = observations[(position + Self.window - back) % Self.window]
            packets += weight * seen.packets
            lost += weight * seen.lost
            weight *= Self.decay
        }
        return packets > 0 ? lost / packets : 0
    }

    private mutating func choose(estimate: Double, delivered: Double?) {
        let current = min(bandwidth ?? estimate, estimate)
        guard averageLoss > 0 else {
            // Without losses the highest candidate is the most likely one, and the link has no inherent loss.
            inherent = Self.leastInherent
            let highest = max(min(current * Self.factors[0], estimate), 1)
            bandwidth = highest
            limit = highest < estimate * 0.999 ? highest : nil
            return
        }
        var best = current, bestScore = -Double.infinity, bestInherent = inherent
        // There is no need to go below the delivered rate.
        let floor = min(delivered ?? 0, current)
        for factor in Self.factors {
            let candidate = max(min(current * factor, estimate), floor, 1)
            let share = likelyInherent(for: candidate)
            let score = likelihood(of: candidate, inherent: share)
            guard score > bestScore else { continue }
            best = candidate
            bestScore = score
            bestInherent = share
        }
        inherent = bestInherent
        bandwidth = best
        limit = best < estimate * 0.999 ? best : nil
    }

    private func bound(on candidate: Double) -> Double {
        min(Self.inherentOffset + Self.inherentBalance / max(candidate, 1), 0.5)
    }

    /// One Newton step on the likelihood of the inherent loss.
    private func likelyInherent(for candidate: Double) -> Double {
        var share = min(max(inherent, Self.leastInherent), bound(on: candidate))
        var first = 0.0, second = 0.0, weight = 1.0
        let observations = observations.span
        for back in (1 + unsettled)...count {
            let seen = observations[(position + Self.window - back) % Self.window]
            let p = Self.probability(share, candidate, seen.rate)
            first += weight * ((seen.lost / p) - (seen.packets - seen.lost) / (1 - p))
            second -= weight * (seen.lost / (p * p) + (seen.packets - seen.lost) / ((1 - p) * (1 - p)))
            weight *= Self.decay
        }
        if second != 0 { share -= 0.75 * first / second }
        return min(max(share, Self.leastInherent), bound(on: candidate))
    }

    private func likelihood(of candidate: Double, inherent share: Double) -> Double {
        // More is better unless losses contradict it.
        let preference = averageLoss < 0.15 ? 0.0002 * candidate / 1_000 + 0.02 * Self.log(1 + candidate / 1_000) : 0
        var sum = 0.0, weight = 1.0
        let observations = observations.span
        for back in (1 + unsettled)...count {
            let seen = observations[(position + Self.window - back) % Self.window]
            let p = Self.probability(share, candidate, seen.rate)
            sum +=
                weight
                * (seen.lost * Self.log(p) + (seen.packets - seen.lost) * Self.log(1 - p) + preference * seen.packets)
            weight *= Self.decay
        }
        return sum
    }

    private static func probability(_ inherent: Double, _ bandwidth: Double, _ rate: Double) -> Double {
        var p = inherent
        if rate > bandwidth, rate > 0 { p += (1 - inherent) * (rate - bandwidth) / rate }
        return min(max(p, 1e-6), 1 - 1e-6)
    }

    /// Natural logarithm of a positive number: exponent and a series in (m-1)/(m+1), good to 1e-7.
    static func log(_ x: Double) -> Double {
        let m = x.significand, y = (m - 1) / (m + 1), y2 = y * y
        let series = 1 + y2 * (1 / 3.0 + y2 * (1 / 5.0 + y2 * (1 / 7.0 + y2 * (1 / 9.0 + y2 * (1 / 11.0 + y2 / 13.0)))))
        return Double(x.exponent) * 0.693_147_180_559_945_3 + 2 * y * series
    }
}
