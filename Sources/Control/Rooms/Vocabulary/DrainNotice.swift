/// The server is about to end: members should continue on another server.
public struct DrainNotice: Sendable, Hashable {
    /// When calls are ended, in milliseconds since 1970; nil: not decided.
    public var deadline: Int64?

    /// A notice with this deadline.
    public init(deadline: Int64?) { self.deadline = deadline }
}
