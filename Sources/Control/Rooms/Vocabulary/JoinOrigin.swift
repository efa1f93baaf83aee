public import Primitives

/// The trace that a request belongs to, by the header field `traceparent` (W3C Trace Context).
public struct TraceContext: Sendable, Hashable {
    /// 16 bytes, not all of them zero.
    public var traceID: [UInt8]
    /// The caller's span: 8 bytes, not all of them zero.
    public var spanID: [UInt8]
    /// Whether the caller records the trace.
    public var isSampled: Bool

    /// Reads a field's value; nil if it is invalid, and the request then begins its own trace (section 3.2 of the specification).
    ///
    /// ```text
    /// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
    /// version  trace id (16 bytes)         span id (8 bytes) flags
    /// ```
    public init?(traceparent text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        // A later version may have more parts after these; 255 is forbidden.
        guard parts.count >= 4, let version = Self.bytes(parts[0], 1), version != [0xff],
            version != [0] || parts.count == 4, let traceID = Self.bytes(parts[1], 16),
            let spanID = Self.bytes(parts[2], 8), let flags = Self.bytes(parts[3], 1),
            traceID.contains(where: { $0 != 0 }), spanID.contains(where: { $0 != 0 })
        else { return nil }
        self.traceID = traceID
        self.spanID = spanID
        isSampled = flags[0] & 1 == 1
    }

    /// This many bytes in lower-case hexadecimal digits.
    private static func bytes(_ text: Substring, _ count: Int) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count == 2 * count else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digit(digits[index]), let low = digit(digits[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}

/// What is known of the request that carried a join's token.
public struct JoinOrigin: Sendable, Hashable {
    /// When it arrived: milliseconds since 1970.
    public var receivedAt: Int64
    /// How long the verification of the token took.
    public var verification: TimeSpan
    /// The trace that it belongs to; nil: none.
    public var trace: TraceContext?

    /// A request that arrived at `receivedAt`.
    public init(receivedAt: Int64, verification: TimeSpan, trace: TraceContext? = nil) {
        self.receivedAt = receivedAt
        self.verification = verification
        self.trace = trace
    }
}
