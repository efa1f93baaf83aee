/// Notifies that the capture of a participant's packets in clear text begins or ends.
public struct CaptureNotice: Sendable, Hashable {
    /// The capture's id.
    public var id: String
    public var isActive: Bool
    /// Audio and video are captured, too; otherwise only headers and RTCP.
    public var keepsPayload: Bool
    /// When it ends at the latest, in milliseconds since 1970.
    public var until: Int64
    /// Who requested it: the API key, and the identity in the token if it has one.
    public var by: String

    /// A notice with these values.
    public init(id: String, isActive: Bool, keepsPayload: Bool, until: Int64, by: String) {
        self.id = id
        self.isActive = isActive
        self.keepsPayload = keepsPayload
        self.until = until
        self.by = by
    }
}
