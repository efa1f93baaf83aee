/// Writes metrics in the Prometheus text format (version 0.0.4): one family at a time, with its help and type.
struct MetricsPage {
    /// How a value behaves over time.
    enum Kind: String {
        case counter, gauge
    }

    private(set) var text = ""

    /// A family of one sample without labels.
    mutating func add(_ name: String, _ kind: Kind, _ help: String, _ value: some BinaryInteger) {
        add(name, kind, help, [([], Double(value))])
    }

    /// A family of samples that differ in labels. Without samples nothing is written.
    mutating func add(
        _ name: String, _ kind: Kind, _ help: String, _ samples: [(labels: [(String, String)], value: Double)]
    ) {
        add(name: "martlet_\(name)", kind, help, samples)
    }

    /// A family whose name is not Martlet's own.
    mutating func add(
        name: String, _ kind: Kind, _ help: String, _ samples: [(labels: [(String, String)], value: Double)]
    ) {
        guard !samples.isEmpty else { return }
        text += "# HELP \(name) \(Self.escaped(help))\n# TYPE \(name) \(kind.rawValue)\n"
        for sample in samples {
            let labels = sample.labels.map { "\($0.0)=\(Self.quoted($0.1))" }.joined(separator: ",")
            text += "\(name)\(labels.isEmpty ? "" : "{\(labels)}") \(Self.number(sample.value))\n"
        }
    }

    /// A histogram without labels: cumulative buckets by upper bound in seconds, and one for all.
    mutating func addHistogram(_ name: String, _ help: String, bounds: [Double], counts: [UInt64], sum: Double) {
        addHistogram(name, help, bounds: bounds, [(label: nil, counts: counts, sum: sum)])
    }

    /// The same with one row of buckets for each value of a label.
    mutating func addHistogram(
        _ name: String, _ help: String, bounds: [Double],
        _ rows: [(label: (name: String, value: String)?, counts: [UInt64], sum: Double)]
    ) {
        guard !rows.isEmpty else { return }
        text += "# HELP martlet_\(name) \(Self.escaped(help))\n# TYPE martlet_\(name) histogram\n"
        for row in rows {
            let label = row.label.map { "\($0.name)=\(Self.quoted($0.value))" }
            let before = label.map { $0 + "," } ?? "", alone = label.map { "{\($0)}" } ?? ""
            var below: UInt64 = 0
            for (index, count) in row.counts.enumerated() {
                below &+= count
                let bound = index < bounds.count ? String(bounds[index]) : "+Inf"
                text += "martlet_\(name)_bucket{\(before)le=\"\(bound)\"} \(below)\n"
            }
            text += "martlet_\(name)_sum\(alone) \(Self.number(row.sum))\nmartlet_\(name)_count\(alone) \(below)\n"
        }
    }

    /// Whole numbers without a fraction; an exponent would be legal but hard to read.
    private static func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
    }

    /// A label's value.
    private static func quoted(_ text: String) -> String { "\"\(escaped(text, isQuoted: true))\"" }

    /// A help text, in which quotes stay as they are. Scalar by scalar: CR LF, or a quote followed by an accent, is one character.
    private static func escaped(_ text: String, isQuoted: Bool = false) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\"" where isQuoted: result += "\\\""
            case "\n": result += "\\n"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
