import Foundation
import Testing

/// Plays each scenario of a suite with eight seeds, so that a bound holds for more than the one that it was found with. `MARTLET_SEED=30 swift test --filter …`
/// plays one of them.
struct SeedShifts: SuiteTrait, TestTrait, TestScoping {
    /// What is added to every scenario's own seed in the present run: in suites without eight seeds, too.
    @TaskLocal static var current: UInt64 = wanted ?? 0

    private static let wanted = ProcessInfo.processInfo.environment["MARTLET_SEED"].flatMap { UInt64($0) }
    private static let all: [UInt64] = wanted.map { [$0] } ?? Array(stride(from: 0, to: 80, by: 10))

    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        // A suite as such plays nothing.
        guard testCase != nil else { return try await function() }
        for shift in Self.all {
            print("seed \(shift): \(test.displayName ?? test.name)")
            try await Self.$current.withValue(shift) { try await function() }
        }
    }
}

extension Trait where Self == SeedShifts {
    /// Eight seeds, or the one of MARTLET_SEED.
    static var eightSeeds: Self { Self() }
}
