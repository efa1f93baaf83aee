import Primitives
import Simulation

/// The seeds of a scenario, printed so that a failure can be played again: MARTLET_SEED=… swift test --filter …
enum Seeds {
    /// The seed asked for in the environment, or the scenario's own.
    static func seed(_ own: UInt64, _ scenario: String = #function) -> UInt64 {
        let seed = Environment.seed ?? own
        print("seed \(seed): \(scenario)")
        return seed
    }
}
