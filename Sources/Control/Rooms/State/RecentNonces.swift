/// Marks of what the application's server sent into a room not long ago: it sends a message again when no answer to it arrived.
struct RecentNonces: Sendable {
    private var newest: [[UInt8]] = []

    /// More than a server has under way.
    private static let count = 128
    /// A UUID in text has 36.
    private static let bytes = 64

    /// Whether nothing with this mark was sent before. Without a mark everything is new.
    mutating func accept(_ nonce: [UInt8]) -> Bool {
        guard !nonce.isEmpty, nonce.count <= Self.bytes else { return true }
        guard !newest.contains(nonce) else { return false }
        if newest.count == Self.count { newest.removeFirst() }
        newest.append(nonce)
        return true
    }
}
