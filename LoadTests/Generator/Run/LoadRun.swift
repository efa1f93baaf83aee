import CLoadIO
import Cryptography
import Foundation
import NetworkIO

/// One run of a scenario against one server.
public final class LoadRun {
    let scenario: Scenario
    let options: RunOptions
    let processes: ServerProcesses
    let driver: any SignallingDriver
    let progress: ProgressLine
    private(set) var handles: [MediaThreadHandle] = []
    private var threads: [LoopThread] = []
    var hub: ConnectionHub
    let population: Population
    private let reference = ReferenceSampler()

    /// Encodes the media and starts the media threads.
    public init(scenario: Scenario, options: RunOptions) throws {
        self.scenario = scenario
        self.options = options
        guard let url = URL(string: options.url), url.host != nil else {
            throw LoadError.usage("'\(options.url)' is not a URL")
        }
        processes =
            options.serverProcesses.isEmpty
            ? .listening(onPort: url.port ?? 80) : ServerProcesses(ids: options.serverProcesses)
        progress = ProgressLine(isQuiet: options.isQuiet)
        progress.show("encoding the media")
        let loops = try LoopLibrary(scenario.media)
        let certificate = try Certificate.selfSigned()
        driver = try makeDriver(options)
        population = Population(scenario, prefix: options.roomPrefix, followsDrains: options.followsDrains)
        handles = try (0..<max(1, options.threads)).map { _ in try MediaThreadHandle() }
        hub = ConnectionHub(
            threads: handles, fingerprint: certificate.fingerprintSHA256, measuresSilence: options.followsDrains)
        for (index, handle) in handles.enumerated() {
            let addresses = Self.share(options.addresses, index)
            let (profiles, seed) = (scenario.srtpProfiles, scenario.seed &+ UInt64(index))
            let (timers, receiveOffload) = (options.timers, options.receiveOffload)
            threads.append(
                try LoopThread(name: "media \(index)", cpu: nil) {
                    do {
                        let thread = try MediaThread(
                            shared: handle, loops: loops, addresses: addresses, certificate: certificate,
                            profiles: profiles, seed: seed, timers: timers, receiveOffload: receiveOffload)
                        thread.run()
                    } catch { FileHandle.standardError.write(Data("media thread: \(error)\n".utf8)) }
                })
        }
    }

    private func waitForThreads() async throws {
        for _ in 0..<500 {
            if handles.allSatisfy(\.isReady) { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw LoadError.system("opening the peers' sockets")
    }

    /// Each thread counts its peers' addresses up from its own start.
    private static func share(_ addresses: PeerAddresses, _ index: Int) -> PeerAddresses {
        guard case .range(let first) = addresses else { return addresses }
        return .range(first: first &+ UInt32(index) << 18)
    }

    /// Fills the rooms, measures, leaves.
    public func run() async throws -> RunReport {
        var report = RunReport(scenario: scenario, server: options.url, driver: options.driver)
        report.label = options.label.isEmpty ? options.driver : options.label
        report.date = ISO8601DateFormatter().string(from: Date())
        report.machine = Machine.description
        report.timers = options.timers.rawValue
        report.receiveOffload = options.receiveOffload
        try await waitForThreads()
        report.residentBefore = processes.memory().resident
        try await fill(&report)
        progress.show("warming up")
        try await Task.sleep(for: .seconds(scenario.warmupSeconds))
        try await measure(&report)
        progress.show("leaving")
        await population.leaveAll()
        try? await Task.sleep(for: .milliseconds(100))
        for handle in handles { handle.stop() }
        for thread in threads { thread.join() }
        progress.clear()
        return report
    }

    /// All joins: publishers first, so that listeners find something to receive.
    private func fill(_ report: inout RunReport) async throws {
        let specs = population.specs
        for room in population.rooms { try await driver.prepare(room: room) }
        let pause = 1 / max(0.1, scenario.joinsPerSecond)
        let start = ConnectionHub.now()
        for (index, spec) in specs.enumerated() {
            let due = start + Int64(Double(index) * pause * 1e9)
            let wait = due - ConnectionHub.now()
            if wait > 0 { try await Task.sleep(for: .nanoseconds(wait)) }
            population.join(spec, by: driver, hub: hub)
            // WHEP servers differ in their answer to a listener that comes before its publisher.
            let isLastSender = spec.sends && (index + 1 == specs.count || !specs[index + 1].sends)
            if isLastSender {
                await population.settle()
                population.startMembers()
            }
            if index % 10 == 0 { progress.show("joining \(index + 1) of \(specs.count)") }
        }
        await population.settle()
        report.peers = specs.count
        (report.failedJoins, report.firstFailure) = population.failures
        if report.failedJoins == specs.count {
            throw LoadError.signalling("no peer could join: \(report.firstFailure ?? "unknown reason")")
        }
    }

    private func snapshots() -> Snapshot {
        handles.reduce(into: Snapshot()) { $0.add($1.takeSnapshot()) }
    }

    private func measure(_ report: inout RunReport) async throws {
        for handle in handles { handle.post(.restartSilences) }
        reference.start()
        defer { reference.stop() }
        var joins = snapshots()
        var before = Sample(joins, processes, reference)
        let first = before
        var delay = Histogram()
        var debt = 0.0
        while before.time - first.time < Int64(scenario.seconds * 1e9) {
            try await Task.sleep(for: .seconds(1))
            let snapshot = snapshots()
            let sample = Sample(snapshot, processes, reference)
            delay.add(snapshot.delay)
            joins.joinTimes.add(snapshot.joinTimes)
            joins.firstFrameTimes.add(snapshot.firstFrameTimes)
            joins.srtpProfiles = snapshot.srtpProfiles
            report.timeline.append(second(from: before, to: sample, since: first, snapshot.delay))
            before = sample
            debt += scenario.churnPerSecond
            while debt >= 1 {
                debt -= 1
                population.replaceOne(by: driver, hub: hub)
            }
            showProgress(report, snapshot)
        }
        report.fill(from: first, to: before, delay: delay, joins: joins, reference: reference)
        report.moves = population.moves
        // Including members that have moved.
        (report.failedJoins, report.firstFailure) = population.failures
    }

    private func second(from old: Sample, to new: Sample, since first: Sample, _ delay: Histogram) -> RunReport.Second {
        let length = Double(new.time - old.time)
        func rate(_ a: UInt64, _ b: UInt64) -> Double { Double(b &- a) * 1e9 / length }
        return RunReport.Second(
            time: Double(new.time - first.time) / 1e9, serverCores: Double(new.serverTime - old.serverTime) / length,
            generatorCores: Double(new.ownTime - old.ownTime) / length, residentBytes: new.resident,
            delivered: rate(old.counters.received, new.counters.received),
            lost: rate(old.counters.lost, new.counters.lost), delayP50: Double(delay.quantile(0.5)) / 1e6,
            delayP99: Double(delay.quantile(0.99)) / 1e6, delayMax: Double(delay.maximum) / 1e6,
            reference: reference.last)
    }

    private func showProgress(_ report: RunReport, _ snapshot: Snapshot) {
        guard let last = report.timeline.last else { return }
        let cost = last.delivered > 0 ? last.serverCores * 1e6 / last.delivered : 0
        progress.show(
            share: last.time / scenario.seconds,
            String(
                format: "%d up, %.0f packets/s, server %.2f cores, %.2f us/packet, delay p99 %.2f ms, lost %d",
                snapshot.open, last.delivered, last.serverCores, cost, last.delayP99, Int(last.lost)))
    }
}

/// The values read at one moment.
struct Sample {
    var time: Int64
    var serverTime: Int64
    var ownTime: Int64
    var resident: Int
    var counters: Counters
    var silences: [Int64]

    init(_ snapshot: Snapshot, _ processes: ServerProcesses, _ reference: ReferenceSampler) {
        time = loadio_monotonic()
        serverTime = processes.cpuTime() ?? 0
        ownTime = loadio_process_time(getpid()) - reference.time
        resident = processes.memory().resident
        counters = snapshot.counters
        silences = snapshot.silences
    }
}
