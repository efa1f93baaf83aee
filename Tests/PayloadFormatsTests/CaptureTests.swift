import Foundation
import TestSupport
import Testing

/// Every packet of every capture parses to what it is; the reports were read by eye when they were stored.
///
/// `MARTLET_UPDATE_GOLDEN=1 swift test --filter CaptureTests` writes them anew.
@Suite("Captures of real clients")
struct CaptureTests {
    @Test("G8: the reports on all captured packets are as reviewed", arguments: ClientCaptures.all)
    func report(_ name: String) throws {
        let report = try CaptureReport(name)
        #expect(report.problems.isEmpty, "\(report.problems.count) packets do not parse: \(report.problems.prefix(5))")
        let path = "golden/\(name).txt"
        if ProcessInfo.processInfo.environment["MARTLET_UPDATE_GOLDEN"] == "1" {
            try report.text.write(to: Vectors.root.appendingPathComponent(path), atomically: true, encoding: .utf8)
        }
        let golden = try Vectors.text(path)
        #expect(report.text == golden)
    }
}
