public import Primitives

/// The value of one field of a log line.
public enum LogValue: Sendable, Hashable {
    /// Text as it is.
    case text(String)
    /// A whole number.
    case number(Int64)
    /// A number with a fraction.
    case real(Double)
    /// A truth value.
    case flag(Bool)
    /// An address without its port. Personal data: shortened unless the output is configured to show addresses.
    case address(SocketAddress)
    /// An address in text form, as HTTP gives it; treated like `address`.
    case host(String)

    /// A whole number of any integer type.
    public static func number(_ value: some BinaryInteger) -> Self { .number(Int64(clamping: value)) }

    /// The text of any describable value, for errors and enums.
    public static func describing(_ value: some Any) -> Self { .text(String(describing: value)) }
}

extension LogValue: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByFloatLiteral
{
    /// A text literal.
    public init(stringLiteral value: String) { self = .text(value) }
    /// A number literal.
    public init(integerLiteral value: Int64) { self = .number(value) }
    /// A truth literal.
    public init(booleanLiteral value: Bool) { self = .flag(value) }
    /// A number literal with a fraction.
    public init(floatLiteral value: Double) { self = .real(value) }
}

/// The fields of a line, in the order in which they are written.
public typealias LogFields = KeyValuePairs<String, LogValue>
