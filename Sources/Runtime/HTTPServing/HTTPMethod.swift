/// A request method (RFC 9110 section 9). Any token is a method; routes decide which ones they support.
public struct HTTPMethod: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The method as on the wire; methods are case-sensitive.
    public let rawValue: String

    /// The method with this name.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The method with this name.
    public init(stringLiteral value: String) { rawValue = value }
    /// The method as on the wire.
    public var description: String { rawValue }

    /// Retrieves a representation.
    public static let get: Self = "GET"
    /// `get` without the body.
    public static let head: Self = "HEAD"
    /// Submits data.
    public static let post: Self = "POST"
    /// Replaces a resource.
    public static let put: Self = "PUT"
    /// Changes a part of a resource.
    public static let patch: Self = "PATCH"
    /// Ends or removes a resource.
    public static let delete: Self = "DELETE"
    /// Asks which methods are supported.
    public static let options: Self = "OPTIONS"

    /// The methods above, as in an `Allow` field.
    static let all = [Self.delete, .get, .head, .options, .patch, .post, .put].map(\.rawValue).joined(separator: ", ")
}
