import Primitives

/// Detects which loops hang, by their counts of turns.
///
/// Time in which the watchdog itself did not run (a process that was stopped, a machine without a free processor) does not count
/// as hanging.
struct Watchdog {
    /// How often to check; each loop takes turns at least as often.
    static let interval = TimeSpan.seconds(1)
    /// A loop that has not turned for this long hangs: a thousand times what a turn may take.
    static let patience = TimeSpan.seconds(5)

    /// How a loop's state changed between two checks.
    enum Change: Equatable {
        case hangs(Int)
        case isBack(Int, after: TimeSpan)
    }

    private struct Loop {
        var turns: UInt64?
        var stillFor = TimeSpan.zero
        var hangs: Bool { stillFor >= Watchdog.patience }
    }

    private var loops: [Loop]
    private var lastLook: MonotonicTime?

    init(loops count: Int) { loops = Array(repeating: Loop(), count: count) }

    /// Processes the loops' current counts.
    mutating func look(_ turns: [UInt64], at now: MonotonicTime) -> [Change] {
        let passed = lastLook.map { min(now - $0, Self.interval) } ?? .zero
        lastLook = now
        var changes: [Change] = []
        for index in loops.indices {
            let before = loops[index]
            loops[index].stillFor = turns[index] == before.turns ? before.stillFor + passed : .zero
            loops[index].turns = turns[index]
            if !before.hangs, loops[index].hangs { changes.append(.hangs(index)) }
            if before.hangs, !loops[index].hangs { changes.append(.isBack(index, after: before.stillFor)) }
        }
        return changes
    }

    /// The loops that hang, and since when.
    var hung: [(index: Int, stillFor: TimeSpan)] {
        loops.indices.filter { loops[$0].hangs }.map { ($0, loops[$0].stillFor) }
    }
}
