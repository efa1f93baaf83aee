import Logging
import NetworkIO
import RoomService
import RuleStore
import Storage

extension RuleDatabase {
    /// Stores a rule; if the database fails, the rule applies until the process ends.
    func keep(_ rule: StandingRule, _ logger: Logger) async {
        do throws(DatabaseError) {
            try await keep(rule, now: MonotonicClock.wallMilliseconds())
        } catch {
            logger.error(
                "a preset, a ban or a revocation will not outlast this process: the database fails",
                ["error": .text(error.description)])
        }
    }
}
