/// H.264 profiles as `profile-level-id` tells them (RFC 6184 section 8.1, table 5).
public enum H264Profile: String, Sendable, Hashable, CaseIterable {
    case constrainedBaseline = "cb"
    case baseline = "b"
    case main = "m"
    case constrainedHigh = "ch"
    case high = "h"
}
