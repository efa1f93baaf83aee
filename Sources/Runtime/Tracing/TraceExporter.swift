public import HTTPClient
public import Logging
import Primitives
public import RoomService
import Rooms
import Synchronization

/// Sends the traces of joins to an OpenTelemetry collector: OTLP over HTTP, `POST /v1/traces`.
///
/// Adding a trace never waits: a bounded queue waits for the collector, and traces that do not fit are counted and lost.
public final class TraceExporter: Sendable {
    /// Totals since the start.
    public struct Statistics: Sendable, Hashable {
        /// Accepted by the collector.
        public var exported: UInt64 = 0
        /// There was no room in the queue.
        public var droppedFull: UInt64 = 0
        /// The collector refused them, or did not respond as long as they were tried.
        public var droppedRefused: UInt64 = 0

        /// None yet.
        public init() {}
    }

    /// A kilobyte each: four seconds of the most joins that a server accepts by default.
    static let maxQueued = 2_048
    /// In one request, of some 300 kB.
    static let maxBatch = 128
    /// Traces that arrive within this time are sent in one request.
    static let gathering = Duration.milliseconds(500)
    /// The delays before the second, third and fourth attempt; then the batch is dropped.
    static let pauses: [Duration] = [.seconds(1), .seconds(2), .seconds(4)]
    /// A collector is usually close. This is also how long it may delay the end of the process.
    static let timeout = TimeSpan.seconds(3)

    private struct State {
        var queue: [JoinTrace] = []
        var statistics = Statistics()
        var isFinished = false
    }

    private let url: String
    private let encode: @Sendable ([JoinTrace]) -> [UInt8]
    private let send: @Sendable (HTTPCall) async -> HTTPCall.Outcome
    private let pause: @Sendable (Duration) async -> Void
    private let logger: Logger
    private let state = Mutex(State())
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation

    /// An exporter to the collector at `endpoint`, such as `http://127.0.0.1:4318`; `encode` makes the body of a request.
    public init(
        endpoint: String, encode: @escaping @Sendable ([JoinTrace]) -> [UInt8],
        send: @escaping @Sendable (HTTPCall) async -> HTTPCall.Outcome = { await $0.performInBackground() },
        pause: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }, logger: Logger
    ) {
        url = (endpoint.hasSuffix("/") ? String(endpoint.dropLast()) : endpoint) + "/v1/traces"
        self.encode = encode
        self.send = send
        self.pause = pause
        self.logger = logger
        (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Adds a trace. A join is not exported if its caller does not record the trace that it belongs to.
    public func add(_ trace: JoinTrace) {
        guard trace.origin?.trace?.isSampled ?? true else { return }
        state.withLock { state in
            if state.queue.count < Self.maxQueued {
                state.queue.append(trace)
            } else {
                state.statistics.droppedFull += 1
            }
        }
        signal.yield()
    }

    /// The totals so far.
    public var statistics: Statistics { state.withLock { $0.statistics } }

    /// Exports until `finish`, and then the rest, each batch once, until the collector does not accept one: the end of the process waits for this. Call once;
    /// cancelling it shortens the pauses.
    public func run() async {
        for await _ in signals {
            await pause(Self.gathering)
            while !isFinished, let batch = dequeueBatch() { await export(batch) }
        }
        while let batch = dequeueBatch(), await attempt(batch, body: encode(batch)) != .failed {}
        let left = state.withLock { state in
            defer { state.queue = [] }
            return state.queue
        }
        if !left.isEmpty { lose(left, "the server ended") }
    }

    private var isFinished: Bool { state.withLock { $0.isFinished } }

    /// No more traces follow.
    public func finish() {
        state.withLock { $0.isFinished = true }
        signal.finish()
    }

    private func dequeueBatch() -> [JoinTrace]? {
        state.withLock { state in
            guard !state.queue.isEmpty else { return nil }
            let batch = Array(state.queue.prefix(Self.maxBatch))
            state.queue.removeFirst(batch.count)
            return batch
        }
    }

    private enum Attempt { case accepted, refused, failed }

    private func export(_ batch: [JoinTrace]) async {
        // Once, because this generates the ids: a collector that stored a batch without responding recognises the second one as the same.
        let body = encode(batch)
        for wait in Self.pauses {
            let isLast = isFinished
            guard await attempt(batch, body: body, isLast: isLast) == .failed, !isLast else { return }
            await pause(wait)
        }
        _ = await attempt(batch, body: body)
    }

    /// Sends a batch; if it fails temporarily and this is the last attempt, it is lost.
    private func attempt(_ batch: [JoinTrace], body: [UInt8], isLast: Bool = true) async -> Attempt {
        var call = HTTPCall("POST", url)
        call.headers = ["Content-Type: application/json"]
        call.body = body
        call.timeout = Self.timeout
        let outcome = await send(call)
        switch outcome {
        case .answered(200..<300, _):
            state.withLock { $0.statistics.exported += UInt64(batch.count) }
            return .accepted
        // Those that the protocol says to try again (OTLP specification, "Retryable Response Codes").
        case .answered(let status, _) where ![429, 502, 503, 504].contains(status):
            lose(batch, "answered \(status)")
            return .refused
        case .answered(let status, _):
            if isLast { lose(batch, "answered \(status)") }
        case .failed(let words), .nobodyListens(let words):
            if isLast { lose(batch, words) }
        case .addressRefused:
            if isLast { lose(batch, "the address is refused") }
        }
        return .failed
    }

    private func lose(_ batch: [JoinTrace], _ why: String) {
        state.withLock { $0.statistics.droppedRefused += UInt64(batch.count) }
        logger.warning(
            "traces of joins are lost: the collector does not accept them",
            ["traces": .number(batch.count), "why": .text(why)])
    }
}
