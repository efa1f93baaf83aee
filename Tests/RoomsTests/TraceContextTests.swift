import Rooms
import Testing

@Suite("W3C trace context")
struct TraceContextTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let span = "00f067aa0ba902b7"

    @Test("A traceparent is read, of a later version too")
    func good() throws {
        let context = try #require(TraceContext(traceparent: "00-\(Self.trace)-\(Self.span)-01"))
        #expect(context.traceID.count == 16 && context.traceID.first == 0x4b && context.traceID.last == 0x36)
        #expect(context.spanID == [0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7] && context.isSampled)
        #expect(TraceContext(traceparent: "00-\(Self.trace)-\(Self.span)-00")?.isSampled == false)
        #expect(TraceContext(traceparent: "01-\(Self.trace)-\(Self.span)-03-more")?.isSampled == true)
    }

    @Test(
        "What is no traceparent is none",
        arguments: [
            "", "00", "00-\(trace)-\(span)", "00-\(trace)-\(span)-01-more", "ff-\(trace)-\(span)-01",
            "00-\(trace.uppercased())-\(span)-01", "00-\(String(repeating: "0", count: 32))-\(span)-01",
            "00-\(trace)-0000000000000000-01", "00-\(trace.dropLast())-\(span)-01", "0-\(trace)-\(span)-01",
            "00-\(trace)-\(span)-0x", "00-\(trace)-\(span)-é",
        ])
    func bad(text: String) { #expect(TraceContext(traceparent: text) == nil) }
}
