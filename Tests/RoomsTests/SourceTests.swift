import AccessTokens
import MediaControl
import Primitives
import TestSupport
import Testing

@testable import Rooms

/// What a token grants for one kind of media is not had for the other by another word.
@Suite("Sources and kinds")
struct SourceTests {
    private static let cases: [(granted: GrantedSource, source: TrackSource, section: ClientDescriptions.Section)] = [
        (.microphone, .microphone, .video("0", track: "t")), (.screenShareAudio, .screenAudio, .video("0", track: "t")),
        (.camera, .camera, .audio("0", track: "t")), (.screenShare, .screen, .audio("0", track: "t")),
    ]

    @Test("1.5: announced before the offer, a section of the other kind is not taken", arguments: cases.indices)
    func announcedBefore(index: Int) throws {
        let (granted, source, section) = Self.cases[index]
        for name in ["t", "0"] {
            var bench = RoomBench()
            let ada = try bench.join("ada") { $0.claims.video.canPublishSources = [granted] }
            try bench.perform(.announce(.init(name, source: source)), ada)
            let answer = try bench.offer(ada, [section])
            #expect(answer.tracks.isEmpty && answer.sdp.contains("a=inactive"))
            #expect(bench.info(ada)?.tracks.isEmpty == true)
            #expect(!bench.commands.contains { if case .addTrack = $0 { true } else { false } })
        }
    }

    @Test(
        "1.5: unannounced, on every edge, a section takes only a granted source of its own kind",
        arguments: cases.indices)
    func unannounced(index: Int) throws {
        var bench = RoomBench()
        let (granted, _, section) = Self.cases[index]
        let caster = try bench.join("caster", isSignalled: false) {
            $0.profile = .publishOnly
            $0.claims.video.canPublishSources = [granted]
        }
        #expect(try bench.offer(caster, "main", [section]).tracks.isEmpty)
    }

    @Test("1.5: announced after the offer, a source of the other kind is refused and changes nothing")
    func announcedAfter() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada")
        try bench.offer(ada, [.audio("0", track: "a"), .video("1", track: "v")])
        let before = bench.info(ada)
        for (track, source) in [("a", TrackSource.screen), ("0", .camera), ("v", .microphone), ("1", .screenAudio)] {
            #expect(throws: RoomError.self) { try bench.perform(.announce(.init(track, source: source)), ada) }
        }
        #expect(bench.info(ada) == before)
        try bench.perform(.announce(.init("v", source: .screen)), ada)
        #expect(bench.info(ada)?.tracks.map(\.source) == [.microphone, .screen])
    }

    @Test("1.5: a section that goes on with an announced track takes its source; one of the other kind ends it")
    func renegotiated() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada") { $0.claims.video.canPublishSources = [.camera, .screenShare, .microphone] }
        try bench.offer(ada, [.video("0", track: "cam")])
        try bench.perform(.announce(.init("slides", source: .screen, name: "Slides")), ada)
        try bench.offer(ada, [.video("0", track: "slides")])
        let track = try #require(bench.info(ada)?.tracks.first)
        #expect(track.source == .screen && track.name == "Slides" && track.clientTrackID == "slides")
        #expect(bench.commands.contains { if case .updateTrack(let t) = $0 { t.source == .screen } else { false } })
        try bench.perform(.announce(.init("voice", source: .microphone)), ada)
        #expect(try bench.offer(ada, [.video("0", track: "voice")]).tracks.isEmpty)
        #expect(bench.info(ada)?.tracks.isEmpty == true)
    }

    @Test("1.5: a section that was given up and comes back as the other kind is judged anew")
    func recycled() throws {
        var bench = RoomBench()
        let ada = try bench.join("ada") { $0.claims.video.canPublishSources = [.microphone] }
        #expect(try bench.offer(ada, [.audio("0"), .audio("1")]).tracks.count == 2)
        var parts = ClientDescriptions().offer([.audio("0"), .audio("1")]).components(of: "m=audio 9 ")
        parts[2] = "m=audio 0 " + parts[2].dropFirst("m=audio 9 ".count)
        let sdp = parts.joined().replacing("a=group:BUNDLE 0 1", with: "a=group:BUNDLE 0")
        try bench.step { (room, turn) throws(RoomError) in
            _ = try room.offer(ada, connection: "pub", sdp: sdp, turn: &turn)
        }
        #expect(bench.info(ada)?.tracks.map(\.mid) == ["0"])
        let answer = try bench.offer(ada, [.audio("0"), .video("1")])
        #expect(answer.tracks.count == 1 && bench.info(ada)?.tracks.map(\.kind) == [.audio])
    }
}

extension String {
    /// The text cut before each `separator`.
    fileprivate func components(of separator: String) -> [String] {
        let parts = split(separator: separator, omittingEmptySubsequences: false).map(String.init)
        return [parts[0]] + parts.dropFirst().map { separator + $0 }
    }
}
