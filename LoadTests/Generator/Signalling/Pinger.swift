import Synchronization

/// Keeps WebSocket sessions alive as the protocol requires, each every eight seconds: one timer and one hop per eighth of them, because
/// the signalling of thousands of idle members must not cost as much as their media.
final class Pinger: Sendable {
    private static let turns = 8
    private let ping: WebSocketClient.Frame
    private struct State {
        var sockets: [WebSocketClient] = []
        var task: Task<Void, Never>?
        var turn = 0
    }
    private let state = Mutex(State())

    /// `ping` is the protocol's keep-alive message.
    init(_ ping: WebSocketClient.Frame) { self.ping = ping }

    deinit { state.withLock { $0.task?.cancel() } }

    func add(_ socket: WebSocketClient) {
        state.withLock { state in
            state.sockets.append(socket)
            guard state.task == nil else { return }
            state.task = Task { [weak self] in
                while (try? await Task.sleep(for: .seconds(1))) != nil, let self { self.pingSome() }
            }
        }
    }

    private func pingSome() {
        let chosen = state.withLock { state -> [WebSocketClient] in
            state.sockets.removeAll { $0.isClosed }
            state.turn = (state.turn + 1) % Self.turns
            return stride(from: state.turn, to: state.sockets.count, by: Self.turns).map { state.sockets[$0] }
        }
        WebSocketClient.send(ping, to: chosen)
    }
}
