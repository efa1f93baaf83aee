import CLoadIO
import Cryptography
import NetworkIO

/// Loads its own relay, which drops, changes, duplicates, reorders, omits, damages and delays packets, and compares the
/// generator's report with what the relay did.
public struct SelfTest {
    /// One thing that was checked.
    public struct Finding: Sendable {
        public var name: String
        public var injected: String
        public var reported: String
        public var isRight: Bool
    }

    /// Seconds of faults and seconds of delay.
    public var seconds: Double
    /// Milliseconds that packets are held in the second part, and by how much the report may differ.
    public var holdMilliseconds = 40
    public var toleranceMilliseconds = 10.0

    public init(seconds: Double = 5) { self.seconds = seconds }

    /// Runs both parts.
    public func run() async throws -> [Finding] {
        let (faults, found) = try await play(FaultPlan(hasFaults: true))
        let counters = found.counters
        func count(_ fault: Fault) -> UInt64 { faults.counts[fault] ?? 0 }
        var findings = [
            compare("packets that arrived", faults.forwarded, counters.received),
            compare("lost", count(.drop), counters.lost),
            compare("corrupted by the server", count(.corrupt), counters.corrupted),
            compare("duplicated", count(.duplicate), counters.duplicates),
            compare("reordered", count(.swap), counters.reordered),
            compare("left out with renumbering", count(.leaveOut), counters.skipped),
            compare("damaged on the way", count(.damage), counters.unauthentic),
            compare("sequence jumps", count(.jump), counters.jumps),
            compare("not explained", 0, counters.unexplained),
        ]
        let (held, delayed) = try await play(FaultPlan(hasFaults: false, hold: Int64(holdMilliseconds) * 1_000_000))
        let difference = (delayed.delay.mean - held.held.mean) / 1e6
        findings.append(
            Finding(
                name: "mean delay", injected: milliseconds(held.held.mean), reported: milliseconds(delayed.delay.mean),
                isRight: difference > -0.5 && difference < toleranceMilliseconds && held.held.count > 50))
        let others = delayed.counters.lost + delayed.counters.corrupted + delayed.counters.duplicates
        findings.append(compare("faults reported where there are none", 0, others))
        return findings
    }

    private func milliseconds(_ nanoseconds: Double) -> String { "\((nanoseconds / 1e4).rounded() / 100) ms" }

    private func compare(_ name: String, _ injected: UInt64, _ reported: UInt64) -> Finding {
        Finding(name: name, injected: "\(injected)", reported: "\(reported)", isRight: injected == reported)
    }

    /// One publisher, two subscribers that compare everything, through the relay.
    private func play(_ plan: FaultPlan) async throws -> (FaultLog, Snapshot) {
        var scenario = Scenario()
        scenario.video.kbps = 400
        scenario.video.width = 320
        scenario.video.height = 180
        scenario.video.loopSeconds = 2
        scenario.subscribers = 2
        scenario.verifyShare = 1
        let loops = try LoopLibrary(scenario.media)
        let certificate = try Certificate.selfSigned()
        let relay = FaultRelayHandle(certificate: try .selfSigned(), peerFingerprint: certificate.fingerprintSHA256)
        let relayThread = try LoopThread(name: "relay", cpu: nil) {
            (try? FaultRelay(shared: relay, certificate: relay.certificate))?.run()
        }
        let media = try MediaThreadHandle()
        let profiles = scenario.srtpProfiles
        let mediaThread = try LoopThread(name: "media", cpu: nil) {
            let thread = try? MediaThread(
                shared: media, loops: loops, addresses: .range(first: 0x7f02_0001), certificate: certificate,
                profiles: profiles, seed: 3)
            thread?.run()
        }
        defer {
            relay.update { $0.isStopped = true }
            relayThread.join()
        }
        let hub = ConnectionHub(threads: [media], fingerprint: certificate.fingerprintSHA256)
        let population = Population(scenario, prefix: "self-test")
        try await waitUntil { relay.port != 0 && media.isReady }
        relay.update { $0.plan = plan }
        // Subscribers first, so that they get the first packet.
        for spec in population.specs.reversed() {
            population.join(spec, by: relay, hub: hub)
            await population.settle()
            if !spec.sends { try await waitUntil { media.takeSnapshot().open > 0 } }
        }
        try await waitUntil { media.takeSnapshot().open == 3 }
        try await Task.sleep(for: .seconds(seconds))
        // At the very end, missing packets cannot be distinguished from ones that have not arrived yet: the last packets are clean.
        relay.update { $0.plan.hasFaults = false }
        try await Task.sleep(for: .milliseconds(700))
        await population.leave { $0.sends }
        try await Task.sleep(for: .milliseconds(200))
        media.stop()
        mediaThread.join()
        return (relay.log, media.takeSnapshot())
    }

    private func waitUntil(_ condition: () -> Bool) async throws {
        for _ in 0..<500 {
            if condition() { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw LoadError.library("the self-test's relay and peers did not find each other")
    }
}
