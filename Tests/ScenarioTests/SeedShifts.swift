import Foundation
import Testing

/// Plays each scenario of a suite with several seeds, so that a bound holds for more than the one that it was found with. `MARTLET_SEED=30 swift test --filter …`
/// plays one seed, that one, as `make scenarios` does for each in turn.
struct SeedShifts: SuiteTrait, TestTrait, TestScoping {
    /// What is added to every scenario's own seed in the present run.
    @TaskLocal static var current: UInt64 = 0

    private static let chosen = ProcessInfo.processInfo.environment["MARTLET_SEED"].flatMap { UInt64($0) }

    /// What is played where MARTLET_SEED chooses none.
    fileprivate let all: [UInt64]

    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        // A suite as such plays nothing.
        guard testCase != nil else { return try await function() }
        for shift in Self.chosen.map({ [$0] }) ?? all {
            print("seed \(shift): \(test.displayName ?? test.name)")
            try await Self.$current.withValue(shift) { try await function() }
        }
    }
}

extension Trait where Self == SeedShifts {
    /// Eight seeds, or the one of MARTLET_SEED.
    static var eightSeeds: Self { Self(all: Array(stride(from: 0, to: 80, by: 10))) }
}
