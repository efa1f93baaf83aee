import Primitives

/// What those who have left had used up of what they may send to everybody: whoever joins again under the same identity does not have it anew.
struct FormerBudgets: Sendable {
    /// Of a token's bearer there is one; beyond so many all are forgotten, which takes as many tokens.
    private static let maximumCount = 4_096

    private var budgets: [String: Member.Budgets] = [:]

    /// A member leaves.
    mutating func keep(_ member: Member, at now: MonotonicTime) {
        guard !member.budgets.areWhole(at: now) else { return }
        if budgets.count >= Self.maximumCount {
            budgets = budgets.filter { !$0.value.areWhole(at: now) }
            if budgets.count >= Self.maximumCount { budgets = [:] }
        }
        budgets[member.info.identity, default: Member.Budgets()].add(member.budgets)
    }

    /// Somebody comes.
    mutating func restore(to member: inout Member) {
        if let former = budgets.removeValue(forKey: member.info.identity) { member.budgets.add(former) }
    }
}
