/// The playbacks of a room, by the session of their participant.
struct Playbacks: Sendable {
    private struct Active: Sendable {
        var info: PlaybackInfo
        /// Why it is about to end.
        var end: PlaybackEnd?
    }

    private var active: [SessionID: Active] = [:]

    /// Whether a session is a playback's.
    func has(_ session: SessionID) -> Bool { active[session] != nil }

    var count: Int { active.count }

    mutating func add(_ info: PlaybackInfo, of session: SessionID) { active[session] = Active(info: info) }

    /// The session of a playback.
    func session(of sid: String) -> SessionID? { active.first { $0.value.info.sid == sid }?.key }

    mutating func setEnd(_ end: PlaybackEnd, of session: SessionID) { active[session]?.end = end }

    /// The session is over: its playback, and why it ended where that is known.
    mutating func remove(_ session: SessionID) -> (info: PlaybackInfo, end: PlaybackEnd?)? {
        active.removeValue(forKey: session).map { ($0.info, $0.end) }
    }
}
