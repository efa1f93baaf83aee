import Recorder
import Testing

@testable import OfflineJobs

@Suite("Arguments of ffmpeg")
struct JobArgumentTests {
    private let arguments = JobArguments(
        width: 640, height: 360, frameRate: 30, bitrate: 800_000, codec: .h264, threads: 2)

    private func filters(_ list: [String]) -> [String] {
        guard let index = list.firstIndex(of: "-filter_complex") else { return [] }
        return list[index + 1].split(separator: ";").map(String.init)
    }

    private func scenes(_ parts: [RecordingTimeline.Part]) -> [(Scene, [String])] {
        let timeline = RecordingTimeline(parts)
        return SceneList(timeline, frameRate: 30)
            .scenes(TileLayout(layout: .grid, width: 640, height: 360))
            .map { ($0, arguments.scene($0, of: timeline, into: "JB_1.0.mp4")) }
    }

    @Test("A scene reads each file from its own moment on and has as many frames as it is long")
    func moments() throws {
        let found = scenes([SceneTests.video("ada", [0...20]), SceneTests.video("bob", [5...20])])
        let second = try #require(found.last?.1)
        #expect(second.filter { $0.hasPrefix("./") } == ["./TR_ada.000.mp4", "./TR_bob.000.mp4", "./JB_1.0.mp4"])
        let seeks = second.indices.filter { second[$0] == "-ss" }.map { second[$0 + 1] }
        #expect(seeks == ["5.000000"])
        let frames = try #require(second.firstIndex(of: "-frames:v"))
        #expect(second[frames + 1] == "450")
        #expect(filters(second).contains { $0.hasPrefix("[1:0]") && $0.contains("setpts=PTS*1.000000+0.000000/TB") })
        #expect(filters(second).last == "[b2]null[v]")
    }

    @Test("A composition needs every file that is shown; a transcode and a copy need their source alone")
    func neededFiles() {
        func needs(_ kind: RecordingJob.Kind, _ source: String?) -> [Bool] {
            let job = RecordingJob(sid: "JB_1", recording: "RC_1", kind: kind, source: source, createdAt: 0)
            return ["TR_1.000.mp4", "TR_2.000.mp4"].map { job.needs($0) }
        }
        #expect(needs(.composition, nil) == [true, true])
        #expect(needs(.transcode, "TR_1.000.mp4") == [true, false])
        #expect(needs(.copy, "TR_2.000.mp4") == [false, true])
    }

    @Test("A copy has all audio and videos as they are, reads its file as MP4 and writes its index in front")
    func copies() {
        let list = JobArguments.copy(of: "TR_1.000.mp4", in: .webm, into: "JB_1.new.webm")
        let text = list.joined(separator: " ")
        #expect(text.contains("-protocol_whitelist file -f mov -i ./TR_1.000.mp4 -map 0:v? -map 0:a? -c copy"))
        #expect(text.contains("-cues_to_front 1 -f webm") && text.hasSuffix("-progress pipe:1 ./JB_1.new.webm"))
    }

    @Test("A scene without videos is black for as long as it lasts")
    func black() {
        let found = scenes([SceneTests.audio("ada", 0...3)])
        #expect(
            filters(found[0].1) == ["color=c=black:s=640x360:r=30:d=3.000000,format=yuv420p[b0]", "[b0]null[v]"])
        #expect(!found[0].1.contains("-i"))
    }

    @Test(
        "A turned video is fitted before it is turned",
        arguments: [
            (0, "scale=w=640:h=360", nil), (90, "scale=w=360:h=640", "transpose=clock"),
            (180, "scale=w=640:h=360", "hflip,vflip"), (270, "scale=w=360:h=640", "transpose=cclock"),
        ] as [(Int, String, String?)])
    func rotation(degrees: Int, scale: String, turn: String?) throws {
        let found = scenes([SceneTests.video("ada", [0...5], rotation: degrees)])
        let filter = try #require(filters(found[0].1).first { $0.hasPrefix("[0:0]") })
        #expect(filter.contains(scale + ":force_original_aspect_ratio=decrease"))
        let turned = turn.map { "\($0)," } ?? ""
        #expect(filter.contains("setsar=1,\(turned)setpts"))
    }

    @Test("A publisher's clock that is slow by 200 ppm is made up for")
    func stretch() throws {
        let found = scenes([SceneTests.video("ada", [0...100], stretch: 1.000_2), SceneTests.video("bob", [50...100])])
        let second = try #require(found.last?.1)
        #expect(second.contains("49.990002"))
        #expect(filters(second).contains { $0.contains("setpts=PTS*1.000200,") })
    }

    @Test("The whole has the scenes as they are and all audio in its place; without audio it has none")
    func whole() throws {
        let timeline = RecordingTimeline([
            SceneTests.video("ada", [0...10]), SceneTests.audio("ada", 0...10), SceneTests.audio("bob", 2.5...8),
        ])
        let list = whole(timeline)
        let found = filters(list)
        #expect(found[1].hasPrefix("[2:0]asetpts=PTS*1.000000+2.500000/TB,"))
        #expect(found[2].hasPrefix("[a0][a1]amix=inputs=2:duration=longest:normalize=0"))
        #expect(list.suffix(1) == ["./JB_1.new.mp4"])
        let video = whole(RecordingTimeline([SceneTests.video("ada", [0...10])]))
        #expect(!video.contains("-filter_complex") && video.contains("copy"))
        #expect(JobArguments.list(of: ["JB_1.0.mp4", "JB_1.1.mp4"]) == "file 'JB_1.0.mp4'\nfile 'JB_1.1.mp4'\n")
    }

    private func whole(_ timeline: RecordingTimeline) -> [String] {
        arguments.whole(
            list: "JB_1.list", audio: timeline.parts.filter { !$0.isVideo }, length: timeline.length,
            into: "JB_1.new.mp4")
    }

    @Test(
        "A mix has each file at its moment from the recording's beginning on, and no filter that is too long for a word of a program"
    )
    func mix() throws {
        let parts = (0..<JobArguments.mostMixed).map { SceneTests.audio("ada", Double($0)...Double($0) + 5) }
        let list = JobArguments.mix(parts, into: "JB_1.audio.0.0.mp4")
        #expect(list.filter { $0 == "-i" }.count == JobArguments.mostMixed && list.last == "./JB_1.audio.0.0.mp4")
        let found = filters(list)
        #expect(found[63].hasPrefix("[63:0]asetpts=PTS*1.000000+63.000000/TB,"))
        #expect(found[64].hasSuffix("amix=inputs=64:duration=longest:normalize=0[a]"))
        // Linux: a word of a program has at most 128 KiB.
        #expect(list.allSatisfy { $0.utf8.count < 1 << 17 })
    }

    @Test("Two passes differ in what they write alone; the second one keeps the audio")
    func passes() throws {
        let part = SceneTests.video("ada", [0...10])
        let (first, second) = (
            arguments.pass(1, of: part, log: "JB_1", into: "JB_1.new.mp4"),
            arguments.pass(2, of: part, log: "JB_1", into: "JB_1.new.mp4")
        )
        for (number, list) in [(1, first), (2, second)] {
            let pass = try #require(list.firstIndex(of: "-pass"))
            #expect(list[pass...].prefix(4) == ["-pass", String(number), "-passlogfile", "./JB_1"])
            #expect(list.contains("libx264") && list.contains("800000"))
        }
        #expect(first.suffix(1) == ["-"] && first.contains("null"))
        #expect(second.suffix(1) == ["./JB_1.new.mp4"] && second.contains("0:a?"))
        let other = JobArguments(width: 640, height: 360, frameRate: 30, bitrate: 1, codec: .vp9, threads: 1)
        #expect(other.pass(1, of: part, log: "JB_1", into: "a").contains("libvpx-vp9"))
    }

    @Test("Every file is read as a movie and may open nothing but files")
    func inputs() {
        let timeline = RecordingTimeline([SceneTests.video("ada", [0...10]), SceneTests.audio("ada", 0...10)])
        let lists =
            scenes(timeline.parts).map(\.1) + [
                whole(timeline), JobArguments.samples(of: timeline.parts[1]),
                JobArguments.mix([timeline.parts[1]], into: "n"),
                arguments.pass(2, of: timeline.parts[0], log: "l", into: "n"),
                JobArguments.copy(of: timeline.parts[0].file, in: .webm, into: "n"),
            ]
        for list in lists {
            #expect(list.contains("-nostdin"))
            for index in list.indices where list[index] == "-i" && list[index - 1] != "1" {
                #expect(list[(index - 4)..<index] == ["-protocol_whitelist", "file", "-f", "mov"])
                #expect(list[index + 1].hasPrefix("./"))
            }
        }
    }

    @Test(
        "Numbers have a point and six digits",
        arguments: [(0, "0.000000"), (1.5, "1.500000"), (-0.25, "-0.250000"), (3_600.000_001, "3600.000001")])
    func numbers(value: Double, text: String) {
        #expect(JobArguments.number(value) == text)
    }
}

@Suite("Progress of ffmpeg")
struct ProgressReaderTests {
    private static let report =
        "frame=1\nfps=0.00\nout_time_us=%\nout_time_ms=7\nout_time=00:00:00.1\nprogress=continue\n"

    private func report(_ value: String) -> [UInt8] {
        Array(Self.report.split(separator: "%").joined(separator: value).utf8)
    }

    @Test("The position follows the reports, in whatever pieces they come")
    func pieces() {
        for size in [1, 7, 1_000] {
            var reader = ProgressReader()
            var positions: [Int64] = []
            let bytes = report("500000") + report("N/A") + report(" 1500000")
            for start in stride(from: 0, to: bytes.count, by: size) {
                if reader.receive(bytes[start..<min(start + size, bytes.count)]) { positions.append(reader.position) }
            }
            #expect(positions.last == 1_500_000 && positions == positions.sorted())
        }
    }

    @Test("It never goes back, and lines without an end take no memory")
    func bounded() {
        var reader = ProgressReader()
        var changes: [Bool] = []
        for bytes in [report("900"), report("-5"), [UInt8](repeating: 0x61, count: 1_000_000)] {
            changes.append(reader.receive(bytes))
        }
        #expect(changes == [true, false, false] && reader.position == 900)
    }
}
