/// Whether the disk has room besides the reserve that recordings leave free.
///
/// Once there is no room, there is room again only well above the reserve: recordings end when there is none and continue when there is some, and would
/// otherwise do both every few seconds.
struct DiskReserve: Sendable {
    /// A second of a hundred tracks of 1 Mbit/s is 12.5 MB (`make recorded`).
    private static let leastMargin: Int64 = 16 << 20

    private let bytes: Int64
    private(set) var hasRoom = true

    /// This many bytes stay free.
    init(_ bytes: Int64) { self.bytes = bytes }

    /// The disk has this many free bytes now; returns whether it has room.
    mutating func look(free: Int64) -> Bool {
        hasRoom = free > (hasRoom ? bytes : bytes + max(bytes / 10, Self.leastMargin))
        return hasRoom
    }
}
