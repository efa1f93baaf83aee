import EdgeSupport
import MediaControl
import Primitives
import Rooms

// Clients' preferences for layers and bandwidth (Protocol.md section 6).

extension Fields {
    /// All of a viewer's preferences for one track; absent ones have their defaults.
    func view() throws(SignallingError) -> TrackView {
        var view = TrackView()
        view.preference = try preference()
        if let rate = try number("framesPerSecond") {
            guard rate.isFinite, (0.1...240).contains(rate) else {
                throw .invalid(fault("framesPerSecond", wanted: "0.1 to 240"))
            }
            view.display.framesPerSecond = rate
        }
        view.display.priority = try priority()
        view.display.isPinned = try flag("pinned") ?? false
        view.display.isHidden = try flag("hidden") ?? false
        view.isPaused = try flag("paused") ?? false
        return view
    }

    /// All of a participant's bandwidth settings; absent ones are the room's.
    func bandwidth() throws(SignallingError) -> BandwidthProfile {
        var model = BandwidthModel()
        model.mode = try text("mode")
        model.maxVideoSubscriptions = try integer("maxVideoSubscriptions").map { Int(clamping: $0) }
        model.maxDownlinkBitrate = try integer("maxDownlinkBitrate")
        model.maxUplinkBitrate = try integer("maxUplinkBitrate")
        model.shortage = try text("shortage")
        model.oversendBitrate = try integer("oversendBitrate")
        switch model.profile {
        case .success(let profile): return profile
        case .failure(let member): throw .invalid(fault(member.name, wanted: member.wanted))
        }
    }

    /// What a client reports about one video that it plays.
    func playbackReport() throws(SignallingError) -> PlaybackReport {
        let track = try track()
        let count = try required(integer("freezeCount"), "freezeCount")
        guard (0...Self.maximumFreezes).contains(count) else {
            throw .invalid(fault("freezeCount", wanted: "0 to \(Self.maximumFreezes)"))
        }
        let seconds = try required(number("totalFreezesDuration"), "totalFreezesDuration")
        guard seconds.isFinite, (0...Self.maximumFreezeSeconds).contains(seconds) else {
            throw .invalid(fault("totalFreezesDuration", wanted: "0 to \(Int(Self.maximumFreezeSeconds))"))
        }
        let duration = TimeSpan.milliseconds(Int64((seconds * 1_000).rounded()))
        return PlaybackReport(track: track, freezes: Freezes(count: UInt64(count), duration: duration))
    }

    /// Of one track; a year of freezes of half a second is 63 million.
    private static let maximumFreezes: Int64 = 100_000_000
    /// Three years.
    private static let maximumFreezeSeconds = 100_000_000.0

    /// A publisher's announcement of one track.
    func announcement() throws(SignallingError) -> TrackAnnouncement {
        let source = try required(word("source") as TrackSource?, "source")
        var announcement = TrackAnnouncement(try track(), source: source)
        announcement.name = try text("name")
        announcement.muted = try flag("muted")
        announcement.width = try size("width")
        announcement.height = try size("height")
        announcement.hint = try word("hint")
        announcement.priority = try priority()
        return announcement
    }
}
