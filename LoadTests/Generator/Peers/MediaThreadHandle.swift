import NetworkIO
import Primitives
import Synchronization

/// Commands of other threads to a media thread.
enum ThreadCommand: Sendable {
    case open(ConnectionPlan)
    /// Payload types and extensions after a renegotiation.
    case update(ConnectionID, receives: [UInt8: ReceivedFormat], extensions: ExtensionNumbers)
    case close(ConnectionID)
    /// Resets the counters: the warm-up is over.
    case resetCounters
    /// Silences are measured from now on.
    case restartSilences
}

/// The side of a media thread that other threads hold.
final class MediaThreadHandle: Sendable {
    let wake: WakeSignal
    private let state = Mutex(State())

    private struct State {
        var commands: [ThreadCommand] = []
        var isStopped = false
        var snapshot = Snapshot()
        /// The first peer's address with the port that all share; nil if each has its own socket.
        var firstAddress: SocketAddress?
        var isReady = false
        var placesTaken = 0
    }

    init() throws { wake = try WakeSignal() }

    var isStopped: Bool { state.withLock { $0.isStopped } }

    /// The thread has its sockets.
    var isReady: Bool { state.withLock { $0.isReady } }

    func becomeReady(firstAddress: SocketAddress?) {
        state.withLock {
            $0.isReady = true
            $0.firstAddress = firstAddress
        }
    }

    /// The place of the next connection.
    func takePlace() -> PeerPlace {
        state.withLock { state in
            defer { state.placesTaken += 1 }
            var address = state.firstAddress
            address?.low += UInt64(state.placesTaken)
            return PeerPlace(index: state.placesTaken, address: address)
        }
    }

    func post(_ command: ThreadCommand) {
        state.withLock { $0.commands.append(command) }
        wake.signal()
    }

    func stop() {
        state.withLock { $0.isStopped = true }
        wake.signal()
    }

    func consumeCommands() -> [ThreadCommand] {
        state.withLock { state in
            guard !state.commands.isEmpty else { return [] }
            defer { state.commands = [] }
            return state.commands
        }
    }

    /// Replaces the counters, and adds to the histograms that have not been taken yet.
    func publish(_ new: Snapshot) {
        state.withLock { state in
            var sum = new
            if state.snapshot.delay.count > 0 { sum.delay.add(state.snapshot.delay) }
            if state.snapshot.joinTimes.count > 0 { sum.joinTimes.add(state.snapshot.joinTimes) }
            if state.snapshot.firstFrameTimes.count > 0 { sum.firstFrameTimes.add(state.snapshot.firstFrameTimes) }
            state.snapshot = sum
        }
    }

    /// The counters so far, and the histograms since the last call.
    func takeSnapshot() -> Snapshot {
        state.withLock { state in
            defer {
                state.snapshot.delay.removeAll()
                state.snapshot.joinTimes.removeAll()
                state.snapshot.firstFrameTimes.removeAll()
            }
            return state.snapshot
        }
    }
}
