import HTTPClient
import Logging
import Primitives
import RoomService
import Rooms
import Synchronization
import TestSupport
import Testing

@testable import Tracing

/// A collector that answers as a test says.
private final class Collector: Sendable {
    private let state: Mutex<(answers: [HTTPCall.Outcome], calls: [HTTPCall], pauses: [Duration], encoded: Int)>

    /// Gives `answers` in turn, and 200 behind them.
    init(_ answers: [HTTPCall.Outcome] = []) { state = Mutex((answers, [], [], 0)) }

    var calls: [HTTPCall] { state.withLock { $0.calls } }
    var pauses: [Duration] { state.withLock { $0.pauses } }
    /// How often a body was made.
    var encoded: Int { state.withLock { $0.encoded } }

    func exporter() -> TraceExporter {
        TraceExporter(
            endpoint: "http://collector.example:4318/",
            encode: { [self] traces in
                state.withLock { $0.encoded += 1 }
                return traces.map { UInt8(truncatingIfNeeded: $0.joinedAt) }
            },
            send: { [self] call in
                state.withLock { state in
                    state.calls.append(call)
                    return state.answers.isEmpty ? .answered(status: 200, body: []) : state.answers.removeFirst()
                }
            }, pause: { [self] pause in state.withLock { $0.pauses.append(pause) } }, logger: .quiet)
    }
}

@Suite("Trace exporter", .timeLimit(.minutes(1)))
struct TraceExporterTests {
    private func trace(_ number: Int64, traceparent: String? = nil) -> JoinTrace {
        JoinTrace(
            room: "R", participant: "PA_1", profile: .full, joinedAt: number,
            origin: JoinOrigin(
                receivedAt: number, verification: .zero, trace: traceparent.flatMap { TraceContext(traceparent: $0) }),
            outcome: .joined)
    }

    @Test("Traces leave in batches, in their order, as JSON to the collector's path")
    func batches() async {
        let collector = Collector()
        let exporter = collector.exporter()
        for number in 0..<200 { exporter.add(trace(Int64(number))) }
        exporter.finish()
        await exporter.run()
        #expect(
            collector.calls.map(\.url) == [
                "http://collector.example:4318/v1/traces", "http://collector.example:4318/v1/traces",
            ])
        let sent: [UInt8] = collector.calls.flatMap { $0.body ?? [] }
        #expect(sent == Array(UInt8(0)..<200))
        #expect(collector.calls.allSatisfy { $0.method == "POST" && $0.headers == ["Content-Type: application/json"] })
        #expect(exporter.statistics.exported == 200)
    }

    @Test("What the queue has no room for is counted and lost, and whoever adds it waits for nobody")
    func full() async {
        let collector = Collector()
        let exporter = collector.exporter()
        for number in 0..<TraceExporter.maxQueued + 10 { exporter.add(trace(Int64(number))) }
        #expect(exporter.statistics.droppedFull == 10)
        exporter.finish()
        await exporter.run()
        #expect(exporter.statistics.exported == UInt64(TraceExporter.maxQueued))
    }

    @Test(
        "A batch is tried again, as it was, where the collector cannot take it now, and lost after four attempts or where it refuses"
    )
    func retries() async throws {
        let busy = HTTPCall.Outcome.answered(status: 503, body: [])
        let collector = Collector([
            busy, .failed("connection refused"), .answered(status: 200, body: []), .answered(status: 400, body: []),
            busy,
            busy, busy, busy,
        ])
        let exporter = collector.exporter()
        let running = Task { await exporter.run() }
        for (number, calls, expected) in [(1, 3, (1, 0)), (2, 4, (1, 1)), (3, 8, (1, 2))]
            as [(Int64, Int, (UInt64, UInt64))]
        {
            exporter.add(trace(number))
            while exporter.statistics.exported + exporter.statistics.droppedRefused < UInt64(number) {
                try await giveWay()
            }
            #expect(collector.calls.count == calls)
            #expect(exporter.statistics.exported == expected.0 && exporter.statistics.droppedRefused == expected.1)
        }
        exporter.finish()
        await running.value
        #expect(collector.encoded == 3, "ids are made with a body")
        #expect(
            collector.pauses.filter { $0 != TraceExporter.gathering } == [
                .seconds(1), .seconds(2), .seconds(1), .seconds(2), .seconds(4),
            ])
    }

    @Test("At the end a collector that does not answer is waited for once, and all that is left counts as lost")
    func end() async {
        let collector = Collector(Array(repeating: .failed("no answer"), count: 100))
        let exporter = collector.exporter()
        for number in 0..<1_000 { exporter.add(trace(Int64(number))) }
        exporter.finish()
        await exporter.run()
        #expect(collector.calls.count == 1)
        #expect(exporter.statistics.exported == 0 && exporter.statistics.droppedRefused == 1_000)
    }

    @Test("A trace that its caller does not record is not exported")
    func unsampled() async {
        let collector = Collector()
        let exporter = collector.exporter()
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0"
        exporter.add(trace(1, traceparent: parent + "0"))
        exporter.add(trace(2, traceparent: parent + "1"))
        exporter.finish()
        await exporter.run()
        #expect(collector.calls.map(\.body) == [[2]])
    }
}
