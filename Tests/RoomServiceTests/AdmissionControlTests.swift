import Primitives
import Rooms
import Testing

@testable import RoomService

/// A server whose load a test sets second by second.
private struct Scene {
    var control: AdmissionControl
    private var totals: LoadSample
    private var now = MonotonicTime(milliseconds: 1_000)

    init(_ limits: LoadLimits, workers: Int = 1) {
        control = AdmissionControl(limits: limits, workers: workers)
        totals = LoadSample(workers: Array(repeating: LoadSample.Worker(), count: workers))
        control.apply(totals, at: now)
    }

    /// Seconds in which each worker is busy for its share of them, and carries the given rates.
    mutating func pass(
        _ seconds: Int, busy: [Double] = [0], peers: Int = 0, sent: UInt64 = 0, arrived: UInt64 = 0,
        dropped: UInt64 = 0, change: (inout LoadSample) -> Void = { _ in }
    ) {
        for _ in 0..<seconds {
            now = now + .seconds(1)
            for index in totals.workers.indices {
                totals.workers[index].busyTime =
                    totals.workers[index].busyTime + .milliseconds(Int64(busy[min(index, busy.count - 1)] * 1_000))
                totals.workers[index].peers = peers
                totals.workers[index].bytesSent += sent * 972
                totals.workers[index].datagramsSent += sent
                totals.workers[index].datagramsReceived += arrived
                totals.workers[index].datagramsDropped += dropped
            }
            change(&totals)
            control.apply(totals, at: now)
        }
    }
}

@Suite("Admission control")
struct AdmissionControlTests {
    /// A limit, ten seconds of load, and what a join is refused for then.
    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var limits = LoadLimits()
        var busy = 0.0
        var sent: UInt64 = 0
        var arrived: UInt64 = 0
        var dropped: UInt64 = 0
        var residentBytes: UInt64 = 0
        var openFiles = 0
        var hangs = false
        var refusal: LoadResource?

        init(_ name: String, _ refusal: LoadResource?, _ set: (inout Case) -> Void) {
            testDescription = name
            self.refusal = refusal
            set(&self)
        }
    }

    static let cases: [Case] = [
        Case("idle", nil) { _ in },
        Case("busy for 80 %", nil) { $0.busy = 0.8 },
        Case("busy for 95 %", .cpu) { $0.busy = 0.95 },
        Case("busy for 95 %, and no limit", nil) {
            $0.busy = 0.95; $0.limits.workerBusy = nil
        },
        Case("a loop that does not respond", .cpu) { $0.hangs = true },
        // 1,000 datagrams of 972 + 28 bytes are 8 Mbit/s.
        Case("8 Mbit/s of 10", nil) {
            $0.sent = 1_000; $0.limits.bandwidthOut = .bitsPerSecond(10_000_000)
        },
        Case("8 Mbit/s of 7.5", .bandwidth) {
            $0.sent = 1_000; $0.limits.bandwidthOut = .bitsPerSecond(7_500_000)
        },
        Case("8 Mbit/s without a limit", nil) { $0.sent = 1_000 },
        Case("memory left", nil) {
            $0.residentBytes = 99; $0.limits.memoryBytes = 100
        },
        Case("no memory left", .memory) {
            $0.residentBytes = 100; $0.limits.memoryBytes = 100
        },
        Case("files left", nil) {
            $0.openFiles = 99; $0.limits.openFiles = 100
        },
        Case("no files left", .openFiles) {
            $0.openFiles = 101; $0.limits.openFiles = 100
        },
        Case("the kernel drops one in 200", nil) {
            $0.arrived = 1_990; $0.dropped = 10
        },
        Case("the kernel drops one in 50", .socketDrops) {
            $0.arrived = 980; $0.dropped = 20
        },
        Case("one of few datagrams was dropped", nil) {
            $0.arrived = 4; $0.dropped = 1
        },
    ]

    @Test("K3: after ten seconds of a load a join is refused for what is at its limit", arguments: cases)
    func refusals(_ one: Case) {
        var scene = Scene(one.limits)
        scene.pass(10, busy: [one.busy], sent: one.sent, arrived: one.arrived, dropped: one.dropped) { sample in
            sample.residentBytes = one.residentBytes
            sample.openFiles = one.openFiles
            sample.workers[0].hangs = one.hangs
        }
        #expect(scene.control.refusal(worker: 0) == one.refusal)
        #expect(
            (scene.control.load == 1) == (one.refusal != nil), "load is 1 where nobody comes in: \(scene.control.load)")
    }

    @Test("K3: one busy second refuses nobody; a steady load does, within ten seconds")
    func smoothing() {
        var scene = Scene(LoadLimits())
        scene.pass(1, busy: [1])
        #expect(scene.control.refusal(worker: 0) == nil)
        scene.pass(9, busy: [1])
        #expect(scene.control.refusal(worker: 0) == .cpu)
    }

    @Test("K3: what was at its limit admits again only well below it")
    func hysteresis() {
        var scene = Scene(LoadLimits())
        scene.pass(30, busy: [0.86])
        #expect(scene.control.refusal(worker: 0) == .cpu)
        scene.pass(30, busy: [0.82])
        #expect(scene.control.refusal(worker: 0) == .cpu, "0.82 is above 0.95 of 0.85")
        scene.pass(30, busy: [0.79])
        #expect(scene.control.refusal(worker: 0) == nil)
        scene.pass(30, busy: [0.82])
        #expect(scene.control.refusal(worker: 0) == nil)
    }

    @Test("K3: a crowd counts before it is measured: what each takes on average is kept for those who were admitted")
    func crowd() {
        var scene = Scene(LoadLimits())
        // 100 peers take 40 %, so 112 more fit below 85 %.
        scene.pass(60, busy: [0.4], peers: 100)
        var admitted = 0
        while scene.control.refusal(worker: 0) == nil {
            scene.control.admitted(worker: 0)
            admitted += 1
        }
        #expect(110...115 ~= admitted)
        // They went elsewhere.
        scene.pass(30, busy: [0.4], peers: 100)
        #expect(scene.control.refusal(worker: 0) == nil)
    }

    @Test(
        "K3: who comes and leaves at once is not expected to stay: joins that cost a worker 20 % go on at 200 a second")
    func churn() {
        var scene = Scene(LoadLimits())
        for second in 0..<60 {
            for _ in 0..<200 {
                #expect(scene.control.refusal(worker: 0) == nil, "second \(second)")
                scene.control.admitted(worker: 0)
            }
            scene.pass(1, busy: [0.2], peers: 8)
        }
    }

    @Test("K3: a full worker refuses joins to its rooms; others and new rooms go on, and load is the mean")
    func workers() {
        var scene = Scene(LoadLimits(), workers: 2)
        scene.pass(60, busy: [1, 0.17])
        #expect(scene.control.refusal(worker: 0) == .cpu && scene.control.refusal(worker: 1) == nil)
        #expect(scene.control.fullWorkers == [0])
        #expect(abs(scene.control.load - (1 + 0.2) / 2) < 0.01)
    }

    @Test("K3: participants and connections are part of the load, and are refused by the rooms, join by join")
    func counted() {
        var limits = LoadLimits()
        limits.participants = 4
        limits.connections = 100
        var scene = Scene(limits)
        scene.pass(1) { sample in
            sample.participants = 3
            sample.connections = 20
        }
        #expect(scene.control.load == 0.75 && scene.control.share(of: .connections) == 0.2)
        scene.pass(1) { $0.participants = 4 }
        #expect(scene.control.load == 1 && scene.control.refusal(worker: 0) == nil)
    }

    @Test("K3: a counter that went back counts nothing: it is no load, and the bandwidth is still reported")
    func countersGoBack() {
        var limits = LoadLimits()
        limits.bandwidthOut = .bitsPerSecond(10_000_000)
        var scene = Scene(limits)
        scene.pass(10, sent: 100, arrived: 1_000, dropped: 1)
        scene.pass(1) { sample in
            sample.workers[0].bytesSent -= 1
            sample.workers[0].datagramsSent -= 1
            sample.workers[0].datagramsReceived -= 1
            sample.workers[0].datagramsDropped -= 1
        }
        #expect(scene.control.refusal(worker: 0) == nil && scene.control.load < 0.2)
        #expect(0..<800_000 ~= scene.control.bandwidthOut.bitsPerSecond)
    }

    @Test("K3: other limits hold from the next join on")
    func otherLimits() {
        var scene = Scene(LoadLimits())
        scene.pass(30, busy: [0.5])
        var limits = LoadLimits()
        limits.workerBusy = 0.4
        scene.control.set(limits)
        #expect(scene.control.refusal(worker: 0) == .cpu)
        scene.control.set(LoadLimits())
        #expect(scene.control.refusal(worker: 0) == nil)
    }
}

@Suite("Admission of joins by load")
struct LoadAdmissionTests {
    let plane = FakePlane()

    /// Twenty seconds in which some workers have no moment of rest.
    private func full(_ gate: LoadGate, workers: [Int]) {
        var sample = LoadSample(workers: [LoadSample.Worker(), LoadSample.Worker()])
        var now = MonotonicTime(milliseconds: 0)
        gate.apply(sample, at: now)
        for _ in 0..<20 {
            now = now + .seconds(1)
            for index in workers {
                sample.workers[index].busyTime = sample.workers[index].busyTime + .seconds(1)
            }
            gate.apply(sample, at: now)
        }
    }

    @Test(
        "K3: a join to a room of a full worker is refused with a time to come back; whoever is in may come anew, new rooms go elsewhere"
    )
    func oneFull() async throws {
        let gate = LoadGate(workers: 2)
        let service = RoomHost(media: plane, load: gate)
        _ = try await service.join(request("ada", room: "A"))
        full(gate, workers: [1])
        let foreseen = await #expect(throws: RoomError.self) { try await service.checkJoin(request("bob", room: "A")) }
        #expect(gate.report.refusals[.cpu] == 0)
        let error = await #expect(throws: RoomError.self) { try await service.join(request("bob", room: "A")) }
        #expect(error?.code == .overloaded && error?.retryAfter == .seconds(10) && foreseen == error)
        try await service.checkJoin(request("ada", room: "A"))
        _ = try await service.join(request("ada", room: "A"))
        _ = try await service.join(request("bob", room: "B"))
        #expect(await service.listRooms().map(\.participants) == [1, 1])
        #expect(gate.report.refusals[.cpu] == 1 && gate.report.load < 1)
    }

    @Test("K3: where every worker is full no room is made by a join; an operator still makes one")
    func allFull() async throws {
        let gate = LoadGate(workers: 2)
        let service = RoomHost(media: plane, load: gate)
        full(gate, workers: [0, 1])
        #expect(gate.report.load == 1)
        #expect(await code { _ = try await service.join(request("bob", room: "B")) } == .overloaded)
        #expect(await service.listRooms().isEmpty && plane.commands.isEmpty)
        _ = try await service.createRoom(named: "C")
        #expect(await service.listRooms().map(\.name) == ["C"])
    }
}
