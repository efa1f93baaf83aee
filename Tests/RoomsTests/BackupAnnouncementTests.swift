import MediaControl
import TestSupport
import Testing

@testable import Rooms

@Suite("Announcements of backup codecs")
struct BackupAnnouncementTests {
    private typealias Codecs = [(payloadType: Int, map: String, fmtp: String?)]
    private static let vp8: Codecs = [(96, "VP8/90000", nil), (97, "rtx/90000", "apt=96")]
    private static let vp9: Codecs = [(98, "VP9/90000", "profile-id=0"), (99, "rtx/90000", "apt=98")]

    /// VP9 on "v", and VP8 on "w".
    private static var announcement: TrackAnnouncement {
        var announcement = TrackAnnouncement("v", source: .camera)
        announcement.kind = .video
        announcement.codecs = [.vp9, .vp8]
        announcement.backupTrackID = "w"
        return announcement
    }

    private static let main = ClientDescriptions.Section.video("0", track: "v", codecs: vp9 + vp8)
    private static let backup = ClientDescriptions.Section.video("1", track: "w", codecs: vp8 + vp9)

    /// Whether ada has one track, in both codecs.
    private func isOneTrack(_ bench: RoomBench, _ ada: SessionID) -> Bool {
        guard bench.info(ada)?.tracks.count == 1, let id = bench.room.state.routing.tracks(of: ada).first,
            let backup = bench.room.state.routing[id]?.backup
        else { return false }
        return bench.room.state.routing[backup]?.description.formats.map(\.codec) == [.vp8]
    }

    @Test(
        "A backup codec that is announced after its track's offer is requested for whoever lacks the first, and comes as that track's"
    )
    func announcedLate() throws {
        var bench = RoomBench()
        let carl = try bench.join("carl"), ada = try bench.join("ada")
        try bench.offer(ada, [Self.main])
        try bench.answerOffers(carl, without: ["VP9"])
        try bench.perform(.announce(Self.announcement), ada)
        try bench.answerOffers(carl, without: ["VP9"])
        let demands: [[Bool]] = bench.consumeEvents(ada).compactMap { event in
            if case .backupWanted(_, .vp8, let layers) = event { layers.map(\.isWanted) } else { nil }
        }
        #expect(demands == [[true]])
        try bench.offer(ada, [Self.main, Self.backup])
        #expect(isOneTrack(bench, ada))
    }

    @Test("A track that is sent in the second of its announced codecs has no backup codec")
    func sentInSecond() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.offer(ada, [.video("0", track: "v", codecs: Self.vp8)])
        try bench.perform(.announce(Self.announcement), ada)
        let track = try #require(bench.info(ada)?.tracks.first)
        #expect(track.backupCodec == nil)
    }

    @Test("An offer may list the section of the backup codec before the one of its track")
    func listedFirst() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.perform(.announce(Self.announcement), ada)
        try bench.offer(ada, [Self.backup, Self.main])
        #expect(isOneTrack(bench, ada))
    }

    @Test("Of a track that is refused beyond the limit, no backup codec is awaited")
    func refused() throws {
        var limits = RoomLimits()
        limits.tracksPerParticipant = 1
        var bench = RoomBench(limits: limits)
        let ada = try bench.join("ada") { $0.recovery = .byJoining }
        try bench.offer(ada, [.audio("2")])
        try bench.perform(.announce(Self.announcement), ada)
        try bench.offer(ada, [.audio("2"), Self.main])
        #expect(bench.room.publications(of: ada) == [bench.trackSID(ada, .audio)])
    }

    @Test("A backup codec whose section ends and comes back is its track's again, under its id or an announced one")
    func comesBack() throws {
        for isAnnounced in [false, true] {
            var bench = RoomBench()
            let ada = try bench.join("ada")
            try bench.perform(.announce(Self.announcement), ada)
            try bench.offer(ada, [Self.main, Self.backup])
            try bench.offer(ada, [Self.main, .video("1", "inactive", codecs: Self.vp8)])
            #expect(!isOneTrack(bench, ada) && bench.info(ada)?.tracks.count == 1)
            if isAnnounced {
                var announcement = TrackAnnouncement("x", source: .camera)
                announcement.kind = .video
                announcement.codecs = [.vp8]
                announcement.backupOf = bench.trackSID(ada, .video)
                try bench.perform(.announce(announcement), ada)
            }
            let track = isAnnounced ? "x" : "w"
            try bench.offer(ada, [Self.main, .video("1", track: track, codecs: Self.vp8 + Self.vp9)])
            #expect(isOneTrack(bench, ada))
            #expect(bench.room.publications(of: ada) == [bench.trackSID(ada, .video)])
        }
    }
}
