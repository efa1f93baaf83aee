import Foundation
import MP4
import MediaControl
import Movies
import Playback
import Primitives
import TestSupport
import Testing

@testable import MediaWorkers
@testable import Player
@testable import Rooms

@Suite("Files that may be played")
struct PlaybackFolderTests {
    @Test(
        "A name is a plain relative path or nothing",
        arguments: [
            ("a.mp4", true), ("films/new/a.mp4", true), ("Ünï cödé.mp4", true), ("..a", true), ("", false),
            ("/", false),
            ("/etc/passwd", false), ("..", false), ("../a", false), ("a/../b", false), ("a//b", false), ("a/", false),
            (".", false), ("./a", false), ("a\0b", false), (String(repeating: "x/", count: 20) + "x", false),
            (String(repeating: "x", count: 300), false),
        ])
    func names(name: String, isPlain: Bool) { #expect((PlaybackFolder.parts(of: name) != nil) == isPlain) }

    @Test("Files below the folder open; links, folders, pipes and what lies outside do not")
    func opening() throws {
        let outside = FileManager.default.temporaryDirectory.appendingPathComponent("playback-\(UUID().uuidString)")
        let root = outside.appendingPathComponent("films"), inner = root.appendingPathComponent("new")
        try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: outside) }
        let secret = outside.appendingPathComponent("secret.mp4")
        try Data([1, 2, 3]).write(to: secret)
        try Data([4, 5, 6, 7]).write(to: inner.appendingPathComponent("a.mp4"))
        try FileManager.default.createSymbolicLink(
            at: root.appendingPathComponent("link.mp4"), withDestinationURL: secret)
        try FileManager.default.createSymbolicLink(at: root.appendingPathComponent("way"), withDestinationURL: outside)
        #expect(mkfifo(root.appendingPathComponent("pipe").path, 0o600) == 0)
        let folder = PlaybackFolder(root.path)
        let file = try #require(folder.open("new/a.mp4"))
        var bytes: [UInt8] = []
        #expect(file.length == 4 && file.read(3, at: 1, into: &bytes) && Array(bytes[..<3]) == [5, 6, 7])
        #expect(!file.read(4, at: 1, into: &bytes), "behind the end there is nothing")
        for name in ["link.mp4", "way/secret.mp4", "pipe", "new", "none", "../secret.mp4", "new/../../secret.mp4"] {
            #expect(folder.open(name) == nil, "\(name)")
        }
    }
}

@Suite("Kinds of files that are played")
struct PlayedFileTests {
    private typealias Bytes = MatroskaBytes

    private func file(_ bytes: [UInt8], named name: String = "a.webm") throws -> PlayedFile {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString)-\(name)").path
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try #require(PlayedFile(path: path))
    }

    private func tracks(_ bytes: [UInt8], named name: String) throws -> [MovieTrack] {
        try file(bytes, named: name).movie().tracks
    }

    /// A file of MP4 with one sample.
    private func movie(_ format: TrackFormat, sample: [UInt8]) -> [UInt8] {
        var writer = FragmentWriter()
        var bytes = writer.begin(format).bytes
        let samples = [Sample(duration: 960, size: UInt32(sample.count), isSync: true)]
        for write in writer.append(samples, data: sample, decodeTime: 0) {
            bytes += [UInt8](repeating: 0, count: max(0, Int(write.offset) + write.bytes.count - bytes.count))
            let start = Int(write.offset)
            bytes.replaceSubrange(start..<start + write.bytes.count, with: write.bytes)
        }
        return bytes
    }

    @Test("A file is read as what its bytes are, whatever its name says")
    func content() throws {
        let block = Bytes.block(2, at: 0, [0xfc, 1])
        let webm = Bytes.header() + Bytes.segment(Bytes.tracks(Bytes.audio()), Bytes.cluster(at: 0, block))
        #expect(try tracks(webm, named: "a.mp4").map(\.format) == [.opus(channels: 2)])
        let movie = movie(TrackFormat(entry: .opus), sample: [0xfc, 1])
        #expect(try tracks(movie, named: "a.webm").map(\.format) == [.opus(channels: 2)])
        #expect(throws: PlaybackRefusal.movie(.notMovie)) { try tracks(Array("no movie at all".utf8), named: "a.webm") }
        #expect(throws: PlaybackRefusal.movie(.notMovie)) { try tracks([0x1a], named: "a.webm") }
    }

    @Test("E17: a film's format has the profile and level of its parameter set, and its size")
    func profile() throws {
        let set: [UInt8] = [0x67, 0x4d, 0x40, 0x1f, 0x8c], size = VideoSize(width: 1_280, height: 720)
        let entry = SampleEntry.h264(sequenceSets: [set], pictureSets: [[0x68, 0xce, 0x3c, 0x80]], size)
        let film = try file(movie(TrackFormat(entry: entry), sample: [0, 0, 0, 2, 0x65, 0x88]), named: "a.mp4")
        let opened = try OpenedTracks([(file: film, start: .zero)])
        #expect(
            opened.formats == [PlaybackFormat(codec: .h264, profileLevelID: "4d401f", width: 1_280, height: 720)])
    }

    @Test("A second track of a kind is not played, and its codec no obstacle; that of the first is")
    func severalTracks() throws {
        func opened(_ entries: [UInt8]...) throws -> OpenedTracks {
            let blocks = Bytes.block(2, at: 0, [0xfc, 1]) + Bytes.block(3, at: 0, [1, 2])
            let content = [Bytes.tracks(entries.flatMap { $0 }), Bytes.cluster(at: 0, blocks)].flatMap { $0 }
            return try OpenedTracks([(file: file(Bytes.header() + Bytes.segment(content)), start: .zero)])
        }
        let opus = Bytes.audio(number: 2), vorbis = Bytes.audio("A_VORBIS", number: 3)
        #expect(try opened(opus, vorbis).tracks.map(\.track.codec) == [.opus])
        #expect(throws: PlaybackRefusal.codec("A_VORBIS")) { _ = try opened(vorbis, opus) }
    }
}

@Suite("Playbacks")
struct RunningPlaybackTests {
    private typealias Bytes = MatroskaBytes
    private static let start = MonotonicTime(milliseconds: 1_000)

    /// A playback of VP8 frames in a file whose times count microseconds.
    private func playback(of frames: [UInt8]) throws -> RunningPlayback {
        let content = [Bytes.info(scale: 1_000), Bytes.tracks(Bytes.video("V_VP8")), Bytes.cluster(at: 0, frames)]
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
        try Data(Bytes.header() + Bytes.segment(content.flatMap { $0 })).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let opened = try OpenedTracks([(file: try #require(PlayedFile(path: path)), start: .zero)])
        let track = PlaybackInfo.Track(sid: "TR_1", kind: .video, codec: .vp8, ssrc: 1, payloadType: 96)
        let info = PlaybackInfo(
            sid: "PB_1", participant: "PA_1", identity: "player", peer: PeerID(1), tracks: [track], startedAt: 0)
        let summary = PlaybackSummary(
            sid: "PB_1", state: .playing, room: "r", roomSid: "RM_1", participant: "PA_1", identity: "player",
            positionMilliseconds: 0, durationMilliseconds: 0, loop: false, startedAt: 0,
            tracks: [PlaybackSummary.Track(sid: "TR_1", kind: "video", codec: "vp8")])
        var random = RandomSource(seed: 1)
        return RunningPlayback(info, opened, summary, worker: 0, at: Self.start, random: &random)
    }

    @Test("Of thousands of samples for one moment no more than a thousand are read at a time, and all in the end")
    func crowdedFile() throws {
        let playback = try playback(of: ((0 as Int16)..<2_500).flatMap { Bytes.block(1, at: $0, [0x10, 1, 2]) })
        let sent = (0..<4).map { _ in
            playback.fill(at: Self.start)
            return playback.summary(at: Self.start).tracks[0].samplesSent
        }
        #expect(sent == [1_000, 2_000, 2_500, 2_500])
    }

    @Test("A playback that is paused rests with its feeds until it goes on")
    func rest() throws {
        let playback = try playback(of: ((0 as Int16)..<2_500).flatMap { Bytes.block(1, at: $0, [0x10, 1, 2]) })
        func states() -> [Bool] { [playback.isResting] + playback.feeds.map(\.isResting) }
        playback.fill(at: Self.start)
        #expect(states() == [false, false])
        playback.apply(PlaybackChange(paused: true), at: Self.start)
        playback.fill(at: Self.start)
        #expect(states() == [true, true] && playback.summary(at: Self.start).tracks[0].samplesSent == 1_000)
        playback.apply(PlaybackChange(positionMilliseconds: 0), at: Self.start)
        #expect(states() == [true, true])
        playback.apply(PlaybackChange(paused: false), at: Self.start)
        #expect(states() == [false, false])
    }
}

@Suite("Feeds of played tracks")
struct PlaybackFeedTests {
    @Test("Packets come out in order with their moments, over the end of the memory, and no more than fit")
    func order() {
        let feed = PlaybackFeed(peer: PeerID(1), capacity: 8_192)
        let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 2_048, alignment: 16)
        defer { scratch.deallocate() }
        var pushed = 0, popped = 0
        var random = RandomSource(seed: 3)
        for _ in 0..<2_000 {
            let length = Int(random.next() % 1_200) + 1
            let packet = [UInt8](repeating: UInt8(truncatingIfNeeded: pushed), count: length)
            let due = MonotonicTime(milliseconds: Int64(pushed))
            if packet.withUnsafeBytes({ feed.push($0, isRTCP: pushed % 5 == 0, due: due) }) {
                pushed += 1
                continue
            }
            // Full: at least half of the memory is in use.
            #expect(pushed - popped >= 3)
            while let due = feed.nextDue {
                #expect(due == MonotonicTime(milliseconds: Int64(popped)))
                let packet = feed.pop(into: scratch, at: due)
                #expect(packet.isRTCP == (popped % 5 == 0))
                #expect(scratch[..<packet.length].allSatisfy { $0 == UInt8(truncatingIfNeeded: popped) })
                popped += 1
            }
        }
        #expect(pushed > 1_000 && feed.counts.late == 0 && feed.counts.taken == UInt64(popped))
    }

    @Test("A packet that is taken more than 20 ms late is counted")
    func late() {
        let feed = PlaybackFeed(peer: PeerID(1), capacity: 8_192)
        let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 2_048, alignment: 16)
        defer { scratch.deallocate() }
        for _ in 0..<2 { #expect([UInt8(1)].withUnsafeBytes { feed.push($0, isRTCP: false, due: .zero) }) }
        _ = feed.pop(into: scratch, at: MonotonicTime(milliseconds: 20))
        _ = feed.pop(into: scratch, at: MonotonicTime(milliseconds: 21))
        #expect(feed.counts == (1, 2) && feed.isEmpty)
    }
}
