import MediaControl
import Primitives

/// The order of subscriptions when bandwidth does not suffice for all.
enum Importance {
    /// What "a larger share" means in collaboration mode: a main video may cost four times as much as another before the other's next
    /// step comes first. Adjacent simulcast layers differ by a factor of about three, so the main video is one layer ahead.
    private static let mainShare = 4.0

    /// The requests' indices, most important first: pinned ones, then screens, then by priority, then the dominant speaker, then
    /// in the given order. In a grid neither screens nor speakers come first.
    static func order(of requests: [AllocationRequest], mode: AllocationRules.Mode) -> [Int] {
        requests.indices.sorted { a, b in
            let left = rank(requests[a], mode), right = rank(requests[b], mode)
            return left != right ? left > right : a < b
        }
    }

    private static func rank(_ request: AllocationRequest, _ mode: AllocationRules.Mode) -> Int {
        let chosen = request.isPinned ? 100 : 0
        let priority = Int(request.priority.rawValue) * 2
        guard mode != .grid else { return chosen + priority }
        return chosen + (request.isScreen ? 50 : 0) + priority + (request.isDominant ? 1 : 0)
    }

    /// How much more than another a subscription may cost before the other's next step comes first.
    static func weight(of request: AllocationRequest, mode: AllocationRules.Mode) -> Double {
        let own =
            switch request.priority {
            case .low: 0.5
            case .standard: 1.0
            case .high: 2.0
            }
        let isMain = request.isPinned || (mode != .grid && (request.isScreen || request.isDominant))
        return isMain ? own * mainShare : own
    }
}
