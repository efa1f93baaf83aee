/// What members were last notified of about the room as a whole, and whether that may be outdated.
///
/// Sent with the room's next deadline and not at once, so that a storm of joins makes few events.
struct RoomAnnouncement: Sendable {
    private var announced: RoomInfo?
    /// Members or publishers have come or gone since the last one.
    private(set) var isDue = false

    mutating func becomesDue() { isDue = true }

    /// `info`, where it is due and news.
    mutating func take(_ info: @autoclosure () -> RoomInfo) -> RoomInfo? {
        guard isDue else { return nil }
        isDue = false
        let current = info()
        guard current != announced else { return nil }
        announced = current
        return current
    }
}
