/// Stores rules one at a time, in the order in which they were made: a rule may withdraw an earlier one.
struct RuleWriter {
    private let keep: @Sendable (StandingRule) async -> Void
    private var last: Task<Void, Never>?

    /// `keep` returns when a rule is stored.
    init(_ keep: @escaping @Sendable (StandingRule) async -> Void) { self.keep = keep }

    /// Begins at once. The task ends when `rules`, and all that were made before them, are stored; nil: there are none.
    mutating func write(_ rules: [StandingRule]) -> Task<Void, Never>? {
        rules.isEmpty ? nil : begin(rules)
    }

    /// The same for one rule.
    mutating func write(_ rule: StandingRule) -> Task<Void, Never> { begin([rule]) }

    private mutating func begin(_ rules: [StandingRule]) -> Task<Void, Never> {
        let before = last
        let task = Task { [keep] in
            await before?.value
            for rule in rules { await keep(rule) }
        }
        last = task
        return task
    }
}
