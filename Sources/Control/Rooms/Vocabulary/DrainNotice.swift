/// The server is about to end: whoever is in a room should go on elsewhere.
public struct DrainNotice: Sendable, Hashable {
    /// When calls are ended, in milliseconds since 1970; nil: nobody has said.
    public var deadline: Int64?

    /// A notice with this deadline.
    public init(deadline: Int64?) { self.deadline = deadline }
}
