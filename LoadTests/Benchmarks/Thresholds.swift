import Foundation

/// The maximum of each figure. A change that needs more states the reason next to the new number in the file.
struct Thresholds {
    private let limits: [String: Double]

    static let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("thresholds.json")

    init() throws { limits = try JSONDecoder().decode([String: Double].self, from: Data(contentsOf: Self.path)) }

    subscript(name: String) -> Double? { limits[name] }

    /// Prints the figures as a table; returns how many exceed their limits, plus how many limits that `isWanted` accepts have no figure: so the limit of a
    /// benchmark that was removed or renamed is noticed.
    func report(_ figures: [Figure], isWanted: (String) -> Bool) -> Int {
        var failures = 0
        print(column("figure", 44), right("value", 12), right("in ref. packets", 16), right("limit", 10))
        for figure in figures {
            let limit = self[figure.name]
            // NaN is over every limit.
            let isOver = limit.map { !(figure.normalized <= $0) } ?? false
            if isOver { failures += 1 }
            let value = figure.unit == .nanoseconds ? String(format: "%.1f ns", figure.value) : text(figure.value)
            print(
                column(figure.name, 44), right(value, 12),
                right(figure.unit == .nanoseconds ? text(figure.normalized) : "", 16),
                right(limit.map(text) ?? "-", 10), isOver ? "TOO MUCH" : "")
        }
        let missing = limits.keys.filter(isWanted).filter { name in !figures.contains { $0.name == name } }.sorted()
        for name in missing { print(column(name, 44), "NOT MEASURED") }
        return failures + missing.count
    }

    private func text(_ value: Double) -> String { String(format: "%.4f", value) }
    private func column(_ text: String, _ width: Int) -> String {
        text.padding(toLength: width, withPad: " ", startingAt: 0)
    }
    private func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
