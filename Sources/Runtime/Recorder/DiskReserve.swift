/// Whether the disk has room beside what recordings leave free.
///
/// Once it has none, room is only what is well above the reserve: recordings end when there is none and go on when there is room again, and would otherwise do both
/// every few seconds.
struct DiskReserve: Sendable {
    /// A second of a hundred tracks of 1 Mbit/s is 12.5 MB (`make recorded`).
    private static let leastMargin: Int64 = 16 << 20

    private let bytes: Int64
    private(set) var hasRoom = true

    /// So many bytes stay free.
    init(_ bytes: Int64) { self.bytes = bytes }

    /// The disk has so many free bytes now; whether that is room.
    mutating func look(free: Int64) -> Bool {
        hasRoom = free > (hasRoom ? bytes : bytes + max(bytes / 10, Self.leastMargin))
        return hasRoom
    }
}
