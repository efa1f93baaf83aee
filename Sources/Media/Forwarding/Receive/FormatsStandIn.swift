internal import Primitives

/// Stands in until the payload formats have landed.
/// What one packet says about its frame.
public struct PayloadSummary: Sendable {
    /// See the payload formats.
    public var startsFrame = false
    /// See the payload formats.
    public var endsFrame = false
    /// See the payload formats.
    public var isKeyframe = false
    /// See the payload formats.
    public var width: Int?
    /// See the payload formats.
    public var height: Int?
    /// See the payload formats.
    public init() {}
}
