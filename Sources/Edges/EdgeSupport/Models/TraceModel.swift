import Primitives
public import RoomService
import Rooms

/// Traces of joins in the JSON encoding of OTLP (`ExportTraceServiceRequest`): ids in hexadecimal digits, 64-bit numbers as text.
public struct TraceModel: Encodable, Sendable {
    private let resourceSpans: [ResourceSpans]

    private struct ResourceSpans: Encodable {
        let resource: Resource
        let scopeSpans: [ScopeSpans]
    }

    private struct Resource: Encodable { let attributes: [Attribute] }

    private struct ScopeSpans: Encodable {
        let scope: Scope
        let spans: [Span]
    }

    private struct Scope: Encodable { let name: String }

    private struct Attribute: Encodable {
        struct Value: Encodable { let stringValue: String }

        let key: String
        let value: Value

        init(_ key: String, _ text: String) {
            self.key = key
            value = Value(stringValue: text)
        }
    }

    private struct Status: Encodable {
        /// 2: an error.
        let code: Int
        let message: String
    }

    private struct Span: Encodable {
        let traceId: String
        let spanId: String
        let parentSpanId: String?
        let name: String
        /// 1: internal, 2: of a server.
        let kind: Int
        let startTimeUnixNano: String
        let endTimeUnixNano: String
        var attributes: [Attribute] = []
        var status: Status?
    }

    /// `traces` of the server called `server` ("martlet/0.1.0"). `random` makes the ids of spans, and of traces that no client has begun.
    public init(_ traces: [JoinTrace], server: String, using random: inout some RandomNumberGenerator) {
        let parts = server.split(separator: "/", maxSplits: 1).map(String.init)
        var attributes = [Attribute("service.name", parts[0])]
        if parts.count > 1 { attributes.append(Attribute("service.version", parts[1])) }
        var spans: [Span] = []
        for trace in traces { spans += Self.spans(of: trace, using: &random) }
        resourceSpans = [
            ResourceSpans(
                resource: Resource(attributes: attributes),
                scopeSpans: [ScopeSpans(scope: Scope(name: "martlet.join"), spans: spans)])
        ]
    }

    /// If a request arrived longer than this before the join, it waited for its client, not for the server: 10 s, within which a client must join.
    private static let longestWait: Int64 = 10_000

    /// The step before each step, and the name of its span.
    private static let steps: [(step: JoinStep, after: JoinStep?, name: String)] = [
        (.offer, nil, "offer"), (.ice, .offer, "ICE"), (.dtls, .ice, "DTLS"),
        (.received, .dtls, "first packet received"),
        (.receivedKeyframe, .received, "first keyframe received"), (.sent, .dtls, "first packet sent"),
        (.sentVideo, .sent, "first keyframe sent"),
    ]

    private static func spans(of trace: JoinTrace, using random: inout some RandomNumberGenerator) -> [Span] {
        let joined = trace.joinedAt * 1_000_000
        let origin = trace.origin.flatMap { $0.receivedAt + longestWait >= trace.joinedAt ? $0 : nil }
        let received = origin.map { min($0.receivedAt * 1_000_000, joined - $0.verification.nanoseconds) }
        let traceID = (trace.origin?.trace?.traceID ?? bytes(16, using: &random)).hexadecimal
        let root = bytes(8, using: &random).hexadecimal
        let last = joined + (trace.steps.values.max() ?? 0) * 1_000_000
        var span = Span(
            traceId: traceID, spanId: root, parentSpanId: trace.origin?.trace.map { $0.spanID.hexadecimal },
            name: "join",
            kind: 2, startTimeUnixNano: String(received ?? joined), endTimeUnixNano: String(last))
        span.attributes = [
            Attribute("martlet.room", trace.room), Attribute("martlet.profile", trace.profile.rawValue),
        ]
        if let participant = trace.participant { span.attributes.append(Attribute("martlet.participant", participant)) }
        if let client = trace.client { span.attributes.append(Attribute("user_agent.original", client)) }
        if case .refused(let code) = trace.outcome { span.status = Status(code: 2, message: code.rawValue) }
        var spans = [span]
        func add(_ name: String, from start: Int64, to end: Int64) {
            spans.append(
                Span(
                    traceId: traceID, spanId: bytes(8, using: &random).hexadecimal, parentSpanId: root, name: name,
                    kind: 1,
                    startTimeUnixNano: String(min(start, end)), endTimeUnixNano: String(end)))
        }
        if let origin, let received {
            add("token", from: received, to: received + origin.verification.nanoseconds)
        }
        for (step, before, name) in steps {
            guard let after = trace.steps[step] else { continue }
            let start = before.flatMap { trace.steps[$0] } ?? 0
            add(name, from: joined + start * 1_000_000, to: joined + after * 1_000_000)
        }
        return spans
    }

    private static func bytes(_ count: Int, using random: inout some RandomNumberGenerator) -> [UInt8] {
        // All zero would be no id.
        (0..<count).map { _ in UInt8.random(in: 1...255, using: &random) }
    }
}
