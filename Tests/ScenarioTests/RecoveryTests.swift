import MediaControl
import Primitives
import Simulation
import Testing

/// What a link may suffer for some seconds, one or several of it at a time, and then be as before, or farther away.
private struct Trouble: CustomStringConvertible {
    let seconds: Double
    private var loss = 0.0
    private var lossOfReports = 0.0
    private var kilobits: Int64 = 3_000
    private var kilobitsOfReports: Int64?
    private var delayMilliseconds: Int64 = 25
    private var jitterMilliseconds: Int64 = 0
    private var staysFarther = false

    init(using random: inout RandomSource) {
        seconds = Double(Int.random(in: 5...150, using: &random)) / 10
        let kinds = Int.random(in: 1..<64, using: &random)
        if kinds & 1 != 0 { loss = Double(Int.random(in: 1...20, using: &random)) / 20 }
        if kinds & 2 != 0 { lossOfReports = Double(Int.random(in: 1...20, using: &random)) / 20 }
        if kinds & 4 != 0 { kilobits = [20, 50, 100, 200, 400, 800].randomElement(using: &random)! }
        if kinds & 8 != 0 { kilobitsOfReports = [5, 20, 60].randomElement(using: &random) }
        if kinds & 16 != 0 { delayMilliseconds = [100, 200, 400, 700].randomElement(using: &random)! }
        if kinds & 32 != 0 { jitterMilliseconds = [30, 100, 200].randomElement(using: &random)! }
        staysFarther = Bool.random(using: &random)
    }

    func apply(to scenario: Scenario) {
        scenario.change {
            $0.loss = loss
            $0.rate = .kilobitsPerSecond(kilobits)
            $0.delay = .milliseconds(delayMilliseconds)
            $0.jitter = .milliseconds(jitterMilliseconds)
        }
        scenario.viewer.uplink.model.loss = lossOfReports
        scenario.viewer.uplink.model.rate = kilobitsOfReports.map { .kilobitsPerSecond($0) }
    }

    func end(in scenario: Scenario) {
        scenario.change { $0 = Scenario.link(3_000, delay: staysFarther ? delayMilliseconds : 25) }
        scenario.viewer.uplink.model.loss = 0
        scenario.viewer.uplink.model.rate = nil
    }

    var description: String {
        "\(seconds) s: \(Int(loss * 100)) % and \(Int(lossOfReports * 100)) % lost, \(kilobits) and \(kilobitsOfReports.map(String.init) ?? "unlimited") kbit/s, "
            + "\(delayMilliseconds) ms away\(staysFarther ? " for good" : ""), ±\(jitterMilliseconds / 2) ms"
    }
}

/// Whatever a link suffers for some seconds, video is whole again soon after: no state of the estimator is a dead end.
@Suite("Scenario: recovery", .eightSeeds)
struct RecoveryTests {
    /// What a viewer sees and hears.
    enum Call: String, CaseIterable, CustomStringConvertible {
        case lone, loneWithAudio, slides, simulcast, simulcastWithAudio, scalable

        var description: String { rawValue }

        /// Shows it; returns the largest layer.
        func begin(_ scenario: Scenario) -> Int {
            switch self {
            case .lone, .loneWithAudio:
                scenario.show(
                    .lone)
            case .slides:
                scenario.show(.camera(width: 1_280, height: 720, bitrate: .kilobitsPerSecond(300), framesPerSecond: 3))
            case .simulcast, .simulcastWithAudio: scenario.show(.simulcast())
            case .scalable: scenario.show(.scalable(spatial: 3, temporal: 3))
            }
            if self == .loneWithAudio || self == .simulcastWithAudio { scenario.hear() }
            return self == .lone || self == .loneWithAudio || self == .slides ? 0 : 2
        }
    }

    @Test(
        "H4: the largest layer is back within 20 s after up to 15 s of losses, little bandwidth, delay and jitter",
        arguments: Call.allCases, 0..<2)
    func afterTrouble(call: Call, number: Int) throws {
        let seed = 2_000 + UInt64(number) + SeedShifts.current
        var random = RandomSource(seed: seed)
        let trouble = Trouble(using: &random)
        let scenario = try Scenario("Recovery", seed: seed, link: Scenario.link(3_000))
        let largest = call.begin(scenario)
        scenario.run(15)
        trouble.apply(to: scenario)
        scenario.run(trouble.seconds)
        trouble.end(in: scenario)
        scenario.run(40)
        let back = scenario.timeToLayer(largest)
        print("Recovery of \(call) after \(back.map { "\(Int($0 * 10))" } ?? "never") tenths of a second, \(trouble)")
        #expect(back.map { $0 <= Thresholds.recovery } ?? false, "\(call), \(trouble): \(back ?? -1) s")
    }
}
