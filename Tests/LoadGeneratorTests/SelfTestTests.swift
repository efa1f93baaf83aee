import LoadGenerator
import Testing

@Suite("Self-test of the load generator", .serialized)
struct SelfTestTests {
    @Test("Injected loss, corruption, duplicates, reordering, damage, jumps and delay are reported as injected")
    func reportsWhatHappens() async throws {
        // The tolerance is for a machine that is busy with other tests; the counts have none.
        var test = SelfTest(seconds: 4)
        test.toleranceMilliseconds = 50
        for finding in try await test.run() {
            #expect(finding.isRight, "\(finding.name): injected \(finding.injected), reported \(finding.reported)")
        }
    }
}
