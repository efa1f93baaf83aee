/// A pair of a public key name and the secret that signs tokens.
public struct APIKey: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible {
    /// The public name: `iss` in tokens.
    public let name: String
    /// The secret; never printed.
    public let secret: String

    /// A key called `name`.
    public init(name: String, secret: String) {
        self.name = name
        self.secret = secret
    }

    /// The name; never the secret.
    public var description: String { "APIKey(\(name))" }
    /// The name; never the secret.
    public var debugDescription: String { description }
}
