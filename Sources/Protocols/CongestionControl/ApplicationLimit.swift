import Primitives

/// Whether less is sent than allowed: then arrivals reveal little about the link.
///
/// Follows libwebrtc's `AlrDetector`: a budget of 65 % of the estimate fills with time and is spent by bytes; limited above 80 % full, no longer below
/// half.
struct ApplicationLimit: Sendable {
    private static let share = 0.65
    private static let start = 0.80
    private static let stop = 0.50
    /// Maximum budget in seconds.
    private static let depth = 0.5

    private var level = 0.0
    private var last: MonotonicTime?
    private(set) var isLimited = false

    init() {}

    /// `bytes` were sent since the last call.
    mutating func sent(_ bytes: Int, estimate: Double, at now: MonotonicTime) {
        let capacity = estimate * Self.share * Self.depth / 8
        let elapsed = last.map { max((now - $0).seconds, 0) } ?? 0
        last = now
        level = min(level + estimate * Self.share * elapsed / 8, capacity)
        level = max(level - Double(bytes), -capacity)
        let full = capacity > 0 ? level / capacity : 0
        if full > Self.start { isLimited = true } else if full < Self.stop { isLimited = false }
    }
}
