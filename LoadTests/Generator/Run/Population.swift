import Primitives
import Synchronization

/// The members of a scenario's rooms: makes them, and lets them join and leave.
final class Population: Sendable {
    let rooms: [String]
    let specs: [PeerSpec]
    private let followsDrains: Bool
    private let state: Mutex<State>

    private struct State {
        var joining: [Task<Void, Never>] = []
        var joined: [(spec: PeerSpec, peer: any JoinedPeer)] = []
        var failed = 0
        var firstFailure: String?
        var replacements = 0
        var moves = 0
        var random: RandomSource
    }

    /// Members whose server is about to end join again spread over this time, not all at once.
    private static let moveSpread: UInt64 = 1_000
    /// By then a proxy has noticed that the server is no longer ready.
    private static let moveDelay: UInt64 = 500
    /// How long a member that has moved also stays on the old server: until all have moved.
    private static let overlap = Duration.milliseconds(3_000)

    /// With `followsDrains`, members whose server is about to end move.
    init(_ scenario: Scenario, prefix: String, followsDrains: Bool = false) {
        self.followsDrains = followsDrains
        state = Mutex(State(random: RandomSource(seed: scenario.seed &+ 1)))
        var random = RandomSource(seed: scenario.seed)
        var specs: [PeerSpec] = []
        rooms = (0..<scenario.rooms).map { "\(prefix)-\($0)" }
        let layers = scenario.media.layers.count
        for room in rooms {
            let senders = (0..<scenario.publishers).map { "pub\($0)" } + (0..<scenario.members).map { "member\($0)" }
            func add(_ identity: String, sends: Bool, receives: Bool) {
                // Every (1/share)th member checks, so that a small room has one too.
                let number = specs.count
                func isPicked(_ share: Double) -> Bool {
                    share > 0 && Int(Double(number) * share) != Int(Double(number + 1) * share)
                }
                var link = LinkSettings()
                let isImpaired = Double(random.next() % 1_000) < scenario.link.share * 1_000
                if isImpaired {
                    link.lossDown = scenario.link.lossDown
                    link.lossUp = scenario.link.lossUp
                    link.rateDown = scenario.link.downKbps * 1_000
                    link.queueMilliseconds = scenario.link.queueMilliseconds
                }
                specs.append(
                    PeerSpec(
                        room: room, identity: identity, sendsAudio: sends && scenario.audio.kbps > 0,
                        videoLayers: sends ? layers : 0, videoCodec: scenario.video.codec, receives: receives,
                        receivesVideo: layers > 0,
                        receivesAudio: scenario.audio.kbps > 0, publishers: senders,
                        verifies: isPicked(scenario.verifyShare), decodes: isPicked(scenario.decodeShare), link: link,
                        audioBurstNanoseconds: Int64(scenario.audio.burstMilliseconds) * 1_000_000))
            }
            for index in 0..<scenario.publishers { add("pub\(index)", sends: true, receives: false) }
            for index in 0..<scenario.members { add("member\(index)", sends: true, receives: true) }
            for index in 0..<scenario.subscribers { add("sub\(index)", sends: false, receives: true) }
        }
        self.specs = specs.filter(\.sends) + specs.filter { !$0.sends }
    }

    /// How many could not join, and why the first could not.
    var failures: (Int, String?) { state.withLock { ($0.failed, $0.firstFailure) } }

    /// Lets a member join. One that also sends begins to receive later, when all publishers have joined.
    func join(_ spec: PeerSpec, by driver: any SignallingDriver, hub: ConnectionHub) {
        start {
            () async throws(LoadError) in
            let peer = try await driver.join(spec, hub: hub)
            self.state.withLock { $0.joined.append((spec, peer)) }
            await self.follow(peer, spec, by: driver, hub: hub)
            if spec.receives, !spec.sends { try await peer.startReceiving() }
        }
    }

    /// Lets members that send and receive begin to receive.
    func startMembers() {
        for (spec, peer) in state.withLock({ $0.joined }) where spec.sends && spec.receives {
            start { () async throws(LoadError) in try await peer.startReceiving() }
        }
    }

    /// How often members have moved to another server.
    var moves: Int { state.withLock { $0.moves } }

    private func follow(_ peer: any JoinedPeer, _ spec: PeerSpec, by driver: any SignallingDriver, hub: ConnectionHub)
        async
    {
        guard followsDrains else { return }
        await peer.onDrain { self.move(peer, spec, by: driver, hub: hub) }
    }

    /// Joins wherever the URL leads now, and then leaves `old`.
    private func move(_ old: any JoinedPeer, _ spec: PeerSpec, by driver: any SignallingDriver, hub: ConnectionHub) {
        start {
            () async throws(LoadError) in
            let wait = self.state.withLock { Self.moveDelay + $0.random.next() % Self.moveSpread }
            try? await Task.sleep(for: .milliseconds(Int64(wait)))
            let peer = try await driver.join(spec, hub: hub)
            self.state.withLock { state in
                state.moves += 1
                state.joined.removeAll { $0.spec.room == spec.room && $0.spec.identity == spec.identity }
                state.joined.append((spec, peer))
            }
            if spec.receives { try await peer.startReceiving() }
            await self.follow(peer, spec, by: driver, hub: hub)
            try? await Task.sleep(for: Self.overlap)
            await old.leave()
        }
    }

    private func start(_ body: @escaping @Sendable () async throws(LoadError) -> Void) {
        let task = Task {
            do throws(LoadError) {
                try await body()
            } catch {
                self.state.withLock {
                    $0.failed += 1
                    if $0.firstFailure == nil { $0.firstFailure = "\(error)" }
                }
            }
        }
        state.withLock { $0.joining.append(task) }
    }

    /// Waits for all joins in progress.
    func settle() async {
        let tasks = state.withLock { state in
            defer { state.joining = [] }
            return state.joining
        }
        for task in tasks { await task.value }
    }

    /// Lets the subscriber that joined first leave, and another one join.
    func replaceOne(by driver: any SignallingDriver, hub: ConnectionHub) {
        let leaver = state.withLock { state -> (spec: PeerSpec, peer: any JoinedPeer)? in
            guard let index = state.joined.firstIndex(where: { !$0.spec.sends }) else { return nil }
            state.replacements += 1
            return state.joined.remove(at: index)
        }
        guard let leaver else { return }
        var spec = leaver.spec
        spec.identity += "+"
        if spec.identity.count > 60 { spec.identity = "again\(state.withLock { $0.replacements })" }
        Task { await leaver.peer.leave() }
        join(spec, by: driver, hub: hub)
    }

    func leaveAll() async {
        await settle()
        await leave { _ in true }
    }

    /// Lets the members that `isChosen` accepts leave.
    func leave(_ isChosen: @Sendable (PeerSpec) -> Bool) async {
        let leaving = state.withLock { state in
            defer { state.joined.removeAll { isChosen($0.spec) } }
            return state.joined.filter { isChosen($0.spec) }
        }
        await withTaskGroup(of: Void.self) { group in
            for (_, peer) in leaving { group.addTask { await peer.leave() } }
        }
    }
}
