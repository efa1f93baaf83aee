/// That a participant's packets are captured in clear text, or are not any more.
public struct CaptureNotice: Sendable, Hashable {
    /// The capture's id.
    public var id: String
    public var isActive: Bool
    /// What is said and shown is captured, too; otherwise headers and RTCP.
    public var keepsPayload: Bool
    /// When it ends at the latest, in milliseconds since 1970.
    public var until: Int64
    /// Who asked for it: the API key, and the identity in the token where it has one.
    public var by: String

    /// A notice of these.
    public init(id: String, isActive: Bool, keepsPayload: Bool, until: Int64, by: String) {
        self.id = id
        self.isActive = isActive
        self.keepsPayload = keepsPayload
        self.until = until
        self.by = by
    }
}
