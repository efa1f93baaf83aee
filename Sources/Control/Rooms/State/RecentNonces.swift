/// Marks of messages that the application's server recently sent into a room: it sends a message again if no reply to it arrived.
struct RecentNonces: Sendable {
    private var newest: [[UInt8]] = []

    /// More than a server sends at a time.
    private static let count = 128
    /// A UUID as text has 36.
    private static let bytes = 64

    /// Whether no message with this mark was sent before. Messages without a mark are always new.
    mutating func accept(_ nonce: [UInt8]) -> Bool {
        guard !nonce.isEmpty, nonce.count <= Self.bytes else { return true }
        guard !newest.contains(nonce) else { return false }
        if newest.count == Self.count { newest.removeFirst() }
        newest.append(nonce)
        return true
    }
}
