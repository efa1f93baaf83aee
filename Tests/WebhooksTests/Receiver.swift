import Primitives
import Synchronization

@testable import Webhooks

/// A receiver that answers as the test says, and whose sender's waits pass at once.
final class Receiver: Sendable {
    struct State {
        var bodies: [String] = []
        /// The content type of each body.
        var types: [String: String] = [:]
        var waits: [TimeSpan] = []
        var now = MonotonicTime.zero
        var answer: @Sendable (_ body: String, _ attempt: Int) -> WebhookOutcome = { _, _ in .answered(status: 200) }
        var attempts = 0
        var onWait: @Sendable (_ count: Int) async -> Void = { _ in }
    }

    private let state = Mutex(State())
    private let (signals, signal) = AsyncStream<Void>.makeStream()

    var bodies: [String] { state.withLock { $0.bodies } }
    var types: [String: String] { state.withLock { $0.types } }
    var waits: [TimeSpan] { state.withLock { $0.waits } }

    func answer(_ answer: @escaping @Sendable (_ body: String, _ attempt: Int) -> WebhookOutcome) {
        state.withLock { $0.answer = answer }
    }

    /// What happens in each wait of the sender.
    func onWait(_ happens: @escaping @Sendable (_ count: Int) async -> Void) { state.withLock { $0.onWait = happens } }

    var world: WebhookSender.World {
        WebhookSender.World(
            post: { [self] request, _ in
                let body = String(decoding: request.body, as: UTF8.self)
                let outcome = state.withLock { state in
                    state.attempts += 1
                    let outcome = state.answer(body, state.attempts)
                    if outcome == .answered(status: 200) { state.bodies.append(body) }
                    let type = request.headers.first { $0.hasPrefix("Content-Type: ") }
                    state.types[body] = type.map { String($0.dropFirst("Content-Type: ".count)) }
                    return outcome
                }
                signal.yield()
                return outcome
            },
            sleep: { [self] interval in
                let (count, happens) = state.withLock { state in
                    state.waits.append(interval)
                    state.now = state.now + interval
                    return (state.waits.count, state.onWait)
                }
                await Task.yield()
                await happens(count)
            }, wallClock: { 1_700_000_000_000 }, now: { [self] in state.withLock { $0.now } }, jitter: { 1 })
    }

    /// Waits until so many events were accepted.
    func accepted(_ count: Int) async {
        if bodies.count >= count { return }
        for await _ in signals where bodies.count >= count { return }
    }
}
