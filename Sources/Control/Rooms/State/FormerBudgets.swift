import Primitives

/// The budgets that members had used up when they left: a participant that joins again under the same identity does not get new ones.
struct FormerBudgets: Sendable {
    /// There is one for each bearer of a token; beyond this number all are forgotten, which takes as many tokens.
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

    /// A member joins.
    mutating func restore(to member: inout Member) {
        if let former = budgets.removeValue(forKey: member.info.identity) { member.budgets.add(former) }
    }
}
