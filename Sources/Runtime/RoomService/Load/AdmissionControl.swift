import Primitives

/// Decides from samples of a server's load whether one more participant may join. Pure: samples and times in, decisions out.
///
/// Shares are smoothed, so that one keyframe refuses nobody, and recent admissions count in advance: measurements show a crowd only after it has joined. A
/// resource that reached its limit admits again only well below it.
struct AdmissionControl {
    /// The time in which a smoothed share follows two thirds of a step. A turn of talk takes longer; meanwhile, `expected` holds back a crowd.
    static let smoothing = TimeSpan.seconds(3)
    /// How long an admission counts in advance: connecting and the rise of the bandwidth estimate take a few seconds.
    static let settling = TimeSpan.seconds(4)
    /// Admits again below this share of the limit.
    static let reopening = 0.95
    /// IPv4 and UDP headers of a datagram (RFC 791, RFC 768).
    static let headerBytes = 28.0
    /// Shares of drops mean nothing while few datagrams arrive.
    static let datagramsToJudge = 100.0

    private struct Worker {
        var last = LoadSample.Worker()
        /// The smoothed share of its time, 0 to 1.
        var busy = 0.0
        /// Participants admitted to it that the smoothed share may not include yet.
        var expected = 0.0
        /// The number of participants that caused the smoothed share: present peers, and recent ones, because those that join and leave at once keep a worker
        /// busy, too.
        var base = 1.0
        var isFull = false

        /// Its expected share when all admitted participants send and receive like the others.
        var expectedBusy: Double { busy + expected * busy / base }
    }

    private(set) var limits: LoadLimits
    private var workers: [Worker]
    private var sampledAt: MonotonicTime?
    /// Smoothed bits per second.
    private var bandwidth = 0.0
    /// Smoothed datagrams per second.
    private var arrived = 0.0, dropped = 0.0
    private var sample: LoadSample
    private var full: Set<LoadResource> = []

    /// A server with this many media workers that has done nothing.
    init(limits: LoadLimits, workers count: Int) {
        self.limits = limits
        workers = Array(repeating: Worker(), count: count)
        sample = LoadSample(workers: Array(repeating: LoadSample.Worker(), count: count))
    }

    /// Other limits, from the next decision on.
    mutating func set(_ limits: LoadLimits) {
        self.limits = limits
        judge()
    }

    /// Applies the server's usage at `now`.
    mutating func apply(_ sample: LoadSample, at now: MonotonicTime) {
        defer { sampledAt = now }
        self.sample = sample
        let elapsed = sampledAt.map { (now - $0).seconds } ?? 0
        var sent = 0.0, received = 0.0, lost = 0.0
        for index in workers.indices {
            let before = workers[index].last, after = sample.workers[index]
            workers[index].last = after
            guard elapsed > 0 else { continue }
            let share = after.hangs ? 1 : min(1, (after.busyTime - before.busyTime).seconds / elapsed)
            workers[index].busy += (share - workers[index].busy) * Self.weight(of: elapsed, Self.smoothing)
            workers[index].expected -= workers[index].expected * Self.weight(of: elapsed, Self.settling)
            workers[index].base = max(1, Double(after.peers) + workers[index].expected)
            let datagrams = Self.increase(before.datagramsSent, after.datagramsSent)
            sent += (Self.increase(before.bytesSent, after.bytesSent) + datagrams * Self.headerBytes) * 8
            received += Self.increase(before.datagramsReceived, after.datagramsReceived)
            lost += Self.increase(before.datagramsDropped, after.datagramsDropped)
        }
        if elapsed > 0 {
            let weight = Self.weight(of: elapsed, Self.smoothing)
            bandwidth += (sent / elapsed - bandwidth) * weight
            arrived += ((received + lost) / elapsed - arrived) * weight
            dropped += (lost / elapsed - dropped) * weight
        }
        judge()
    }

    /// By how much a counter grew. One that went back counts nothing: the kernel's counters wrap, and a worker that hangs is reported with the values that
    /// were read last, by any caller.
    private static func increase(_ before: UInt64, _ after: UInt64) -> Double {
        after > before ? Double(after - before) : 0
    }

    /// How far a smoothed value moves towards a new one after `elapsed` seconds.
    private static func weight(of elapsed: Double, _ time: TimeSpan) -> Double {
        elapsed / (elapsed + time.seconds)
    }

    /// Why a join to a room of worker `index` is refused; nil if it is not.
    func refusal(worker index: Int) -> LoadResource? {
        if let resource = LoadResource.allCases.first(where: { $0 != .cpu && full.contains($0) }) { return resource }
        return workers[index].isFull ? .cpu : nil
    }

    /// A participant was admitted to a room of worker `index`.
    mutating func admitted(worker index: Int) {
        workers[index].expected += 1
        judge()
    }

    /// Workers that accept nobody.
    var fullWorkers: [Int] { workers.indices.filter { workers[$0].isFull } }

    /// The smoothed share of its time that each worker is busy, 0 to 1.
    var busy: [Double] { workers.map(\.busy) }

    /// Smoothed bits per second to clients.
    var bandwidthOut: Bitrate { .bitsPerSecond(Int64(bandwidth)) }

    /// The used share of a resource's limit, 0 to 1; nil if it has no limit. For CPU, the mean over the workers: at 1 none of them accepts anybody.
    func share(of resource: LoadResource) -> Double? {
        func of(_ used: Double, _ limit: Double?) -> Double? { limit.map { min(1, max(0, used / max($0, 1e-9))) } }
        let expectedPeers = workers.reduce(0) { $0 + $1.expected }
        switch resource {
        case .cpu:
            let shares = workers.compactMap { $0.isFull ? 1 : of($0.expectedBusy, limits.workerBusy) }
            return limits.workerBusy == nil ? nil : shares.reduce(0, +) / Double(max(shares.count, 1))
        case .bandwidth:
            let expected = bandwidth * (1 + expectedPeers / workers.reduce(0) { $0 + $1.base })
            return of(expected, limits.bandwidthOut.map { Double($0.bitsPerSecond) })
        case .connections: return of(Double(sample.connections), limits.connections.map { Double($0) })
        case .participants: return of(Double(sample.participants), limits.participants.map { Double($0) })
        case .memory: return of(Double(sample.residentBytes), limits.memoryBytes.map { Double($0) })
        case .openFiles: return of(Double(sample.openFiles), limits.openFiles.map { Double($0) })
        case .socketDrops:
            return of(arrived < Self.datagramsToJudge ? 0 : dropped / arrived, limits.socketDrops)
        }
    }

    /// The largest of all shares: 0 for an idle server, 1 for one that accepts nobody.
    var load: Double { LoadResource.allCases.compactMap(share(of:)).max() ?? 0 }

    private mutating func judge() {
        for index in workers.indices {
            workers[index].isFull = Self.isFull(
                workers[index].isFull, limits.workerBusy.map { workers[index].expectedBusy / $0 } ?? 0)
        }
        // The rooms themselves count participants and connections, at each join.
        for resource in LoadResource.allCases where ![.cpu, .connections, .participants].contains(resource) {
            let isFull = Self.isFull(full.contains(resource), share(of: resource) ?? 0)
            if isFull { full.insert(resource) } else { full.remove(resource) }
        }
    }

    private static func isFull(_ wasFull: Bool, _ share: Double) -> Bool { share >= (wasFull ? reopening : 1) }
}
