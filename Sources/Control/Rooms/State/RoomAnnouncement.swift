/// What members were last notified of about the room as a whole, and whether that may be outdated.
///
/// Sent with the room's next deadline and not at once, so that many joins at once cause few events.
struct RoomAnnouncement: Sendable {
    private var announced: RoomInfo?
    /// Members or publishers have joined or left since the last one.
    private(set) var isDue = false
    private var isSilent = false

    mutating func becomesDue() { isDue = true }

    /// The room is about to end: members are notified only of their own end.
    mutating func fallSilent() { isSilent = true }

    /// `info`, if it has changed, and whether to send it also to members that do not want to know who else is here: that they are recorded is about themselves.
    /// Nothing is due until the next change.
    mutating func news(of info: RoomInfo) -> (info: RoomInfo, isForAll: Bool)? {
        isDue = false
        guard !isSilent, info != announced else { return nil }
        defer { announced = info }
        return (info, info.recordings != (announced?.recordings ?? []))
    }
}
