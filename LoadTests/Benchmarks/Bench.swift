import Foundation
import Measuring

/// `make bench`: what one packet costs at each step, in reference packets, against thresholds.json.
///
///     bench [--only TEXT] [--json FILE] [--trace | --trace-retains]
///     bench record FOLDER [TRACKS]
///     bench room [--publishers 1] [--subscribers 100] [--seconds 10] …
@main
enum Bench {
    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.first == "record" { return try RecordingRun(arguments: Array(arguments.dropFirst())).run() }
        if arguments.first == "room" { return try await RoomRun(arguments: Array(arguments.dropFirst())).run() }
        func value(_ name: String) -> String? {
            arguments.firstIndex(of: name).flatMap { arguments.indices.contains($0 + 1) ? arguments[$0 + 1] : nil }
        }
        guard let reference = ReferencePacket() else {
            print("bench: no loopback UDP or no AES-GCM here")
            exit(1)
        }
        let runner = Runner(reference: reference, filter: value("--only"))
        try PacketBenchmarks.run(runner)
        try ProtectBenchmarks.run(runner)
        try ForwardBenchmarks.run(runner)
        try FeedbackBenchmarks.run(runner)
        try SocketBenchmarks.run(runner)
        try RecordingBenchmarks.run(runner)
        try StatisticsBenchmarks.run(runner)
        try MemoryBenchmarks.run(runner)
        try DataBenchmarks.run(runner)
        guard !runner.figures.isEmpty else {
            print("bench: no figure is called so")
            exit(1)
        }
        let failures = try Thresholds().report(runner.figures, isWanted: runner.wants)
        print(String(format: "reference packet: %.0f ns (%d samples)", reference.nanoseconds, reference.samples.count))
        if let path = value("--json") {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try encoder.encode(runner.figures).write(to: URL(fileURLWithPath: path))
        }
        if failures > 0 {
            print("\(failures) figures are above their limits or were not measured")
            exit(1)
        }
    }
}
