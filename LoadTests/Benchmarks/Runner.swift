import CInstruments
import Measuring

/// One measured figure.
struct Figure: Encodable {
    enum Unit: String, Encodable {
        /// Nanoseconds of processor time, compared in reference packets.
        case nanoseconds
        /// A plain number, compared as it is.
        case plain
    }

    var name: String
    var unit: Unit
    var value: Double
    /// The value in reference packets; the value itself if the unit is plain.
    var normalized: Double
}

/// Runs benchmarks in rounds, each with a sample of the reference packet, and keeps medians.
final class Runner {
    static let rounds = 9
    private let reference: ReferencePacket
    private let filter: String?
    private(set) var figures: [Figure] = []

    init(reference: ReferencePacket, filter: String?) {
        self.reference = reference
        self.filter = filter
    }

    /// Nanoseconds of the machine's reference packet in this run.
    var referenceNanoseconds: Double { reference.nanoseconds }

    func wants(_ name: String) -> Bool { filter.map { name.contains($0) } ?? true }

    /// The time of one operation; `body` does `operations` of them.
    @discardableResult
    func time(_ name: String, operations: Int, _ body: () -> Void) -> Double {
        guard wants(name) else { return 0 }
        body()
        var nanoseconds: [Double] = [], ratios: [Double] = []
        for _ in 0..<Self.rounds {
            let unit = reference.sample()
            let start = ProcessorTime.thread
            body()
            let spent = Double(ProcessorTime.thread - start) / Double(operations)
            nanoseconds.append(spent)
            ratios.append(spent / unit)
        }
        note(Figure(name: name, unit: .nanoseconds, value: nanoseconds.median, normalized: ratios.median))
        return nanoseconds.median
    }

    func note(_ figure: Figure) { figures.append(figure) }

    func note(_ name: String, _ value: Double) {
        guard wants(name) else { return }
        note(Figure(name: name, unit: .plain, value: value, normalized: value))
    }
}

/// Keeps the optimiser from removing the computation of `value`.
@inline(never) @_optimize(none) func consume<Value>(_ value: Value) {}
