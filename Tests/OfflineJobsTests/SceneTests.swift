import Recorder
import Testing

@testable import OfflineJobs

@Suite("Scenes of a composition")
struct SceneTests {
    static func video(
        _ participant: String, _ spans: [ClosedRange<Double>], file: String? = nil, isScreen: Bool = false,
        rotation: Int = 0, stretch: Double = 1
    ) -> RecordingTimeline.Part {
        let ranges = spans.map { Int64($0.lowerBound * 1_000_000)..<Int64($0.upperBound * 1_000_000) }
        let start = ranges.first?.lowerBound ?? 0
        return RecordingTimeline.Part(
            file: file ?? "TR_\(participant).000.mp4", track: "TR_\(participant)\(isScreen ? "_screen" : "")",
            participant: "PA_\(participant)", isVideo: true, isScreen: isScreen, rotation: rotation, start: start,
            length: (ranges.last?.upperBound ?? 0) - start, stretch: stretch, spans: ranges)
    }

    static func audio(_ participant: String, _ span: ClosedRange<Double>) -> RecordingTimeline.Part {
        let range = Int64(span.lowerBound * 1_000_000)..<Int64(span.upperBound * 1_000_000)
        return RecordingTimeline.Part(
            file: "TR_\(participant)_audio.000.mp4", track: "TR_\(participant)_audio", participant: "PA_\(participant)",
            isVideo: false, start: range.lowerBound, length: range.upperBound - range.lowerBound, spans: [range])
    }

    private func scenes(
        _ layout: RecordingJob.Layout, _ parts: [RecordingTimeline.Part], turns: [SpeakerFinder.Turn] = []
    ) -> [(frames: Range<Int64>, parts: [Int])] {
        SceneList(RecordingTimeline(parts), frameRate: 30)
            .scenes(TileLayout(layout: layout, width: 1_280, height: 720), turns: turns)
            .map { ($0.frames, $0.tiles.map(\.part)) }
    }

    @Test("Another scene begins where somebody comes late or leaves early, and there is no gap between scenes")
    func late() {
        let found = scenes(.grid, [Self.video("ada", [0...60]), Self.video("bob", [20...50])])
        #expect(found.map(\.frames) == [0..<600, 600..<1_500, 1_500..<1_800])
        #expect(found.map(\.parts) == [[0], [0, 1], [0]])
    }

    @Test("Before the first video, and while there is audio alone, a scene is black")
    func black() {
        let found = scenes(.grid, [Self.audio("ada", 0...30), Self.video("ada", [10...20])])
        #expect(found.map(\.frames) == [0..<300, 300..<600, 600..<900])
        #expect(found.map(\.parts) == [[], [1], []])
        #expect(scenes(.grid, [Self.audio("ada", 0...5)]).map(\.frames) == [0..<150])
        #expect(scenes(.grid, []).isEmpty)
    }

    @Test("A track that goes on in another file within two seconds keeps its place")
    func segments() {
        let found = scenes(
            .grid,
            [
                Self.video("ada", [0...10], file: "a.mp4"), Self.video("ada", [11.5...20], file: "b.mp4"),
                Self.video("bob", [0...20]),
            ])
        #expect(found.map(\.frames) == [0..<345, 345..<600])
        #expect(found.map(\.parts) == [[0, 2], [1, 2]])
    }

    @Test("Where two files of a track overlap, the later one is shown from its beginning on")
    func overlap() {
        let found = scenes(
            .grid, [Self.video("ada", [0...10.5], file: "a.mp4"), Self.video("ada", [10...20], file: "b.mp4")])
        #expect(found.map(\.frames) == [0..<300, 300..<600])
        #expect(found.map(\.parts) == [[0], [1]])
    }

    @Test("A camera that was switched off leaves the grid and comes back")
    func switchedOff() {
        let found = scenes(.grid, [Self.video("ada", [0...10, 20...30]), Self.video("bob", [0...30])])
        #expect(found.map(\.parts) == [[0, 1], [1], [0, 1]])
    }

    @Test("What changes within 0.4 s makes no scene of its own")
    func quick() {
        let found = scenes(
            .grid, [Self.video("ada", [0...10]), Self.video("bob", [0.1...10]), Self.video("eve", [0.3...9.9])])
        #expect(found.map(\.frames) == [0..<300])
        #expect(found.map(\.parts) == [[0, 1, 2]])
    }

    @Test("The large video changes with who speaks; who is not to be seen changes nothing")
    func speakers() {
        let videos = [Self.video("ada", [0...30]), Self.video("bob", [0...30]), Self.audio("eve", 0...30)]
        let turns = [("ada", 1.0), ("bob", 10), ("eve", 15), ("ada", 20)].map {
            SpeakerFinder.Turn(start: Int64($0.1 * 1_000_000), participant: "PA_\($0.0)")
        }
        let found = scenes(.speaker, videos, turns: turns)
        #expect(found.map(\.frames) == [0..<300, 300..<600, 600..<900])
        #expect(found.map(\.parts) == [[0, 1], [1, 0], [0, 1]])
        #expect(scenes(.grid, videos, turns: turns).map(\.frames) == [0..<900])
    }

    @Test("A presentation is a grid until the screen begins, and after it ends")
    func screen() {
        let found = scenes(
            .presentation,
            [Self.video("ada", [0...30]), Self.video("bob", [0...30]), Self.video("ada", [10...20], isScreen: true)])
        #expect(found.map(\.parts) == [[0, 1], [2, 0, 1], [0, 1]])
    }
}

@Suite("Who speaks")
struct SpeakerFinderTests {
    /// Energies of participants per 200 ms.
    private func turns(_ levels: [(name: String, energy: (Int) -> Double)], steps: Int) -> [String] {
        var finder = SpeakerFinder()
        for (name, energy) in levels {
            for step in 0..<steps { finder.add(energy(step), of: name, at: Int64(step) * SpeakerFinder.step) }
        }
        return finder.turns().map { "\($0.participant) \($0.start / 1_000_000)" }
    }

    @Test("Whoever is louder by 6 dB takes over, not before 2 s, and noise is nobody")
    func takeOver() {
        let found = turns(
            [("ada", { $0 < 50 ? 0.01 : 0 }), ("bob", { $0 < 50 ? 0 : 0.01 }), ("eve", { _ in 0.000_000_1 })],
            steps: 100)
        #expect(found == ["ada 0", "bob 10"])
        // 3 dB are none.
        #expect(turns([("ada", { _ in 0.01 }), ("bob", { $0 < 20 ? 0 : 0.02 })], steps: 100) == ["ada 0"])
        // A cough of 0.4 s within the first two seconds.
        #expect(turns([("ada", { _ in 0.001 }), ("bob", { 4...5 ~= $0 ? 0.1 : 0 })], steps: 12) == ["ada 0"])
        #expect(turns([("ada", { _ in 0 })], steps: 100).isEmpty)
    }

    @Test("Samples become one energy per 200 ms, whatever the pieces in which they come")
    func meter() {
        // A square wave at a quarter of full scale: energy 1/16.
        let bytes = (0..<4_000).flatMap { _ in [UInt8(0), UInt8(0x20)] }
        for size in [1, 3, 1_000, 8_000] {
            var meter = EnergyMeter()
            var found: [(Double, Int64)] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                meter.receive(bytes[start..<min(start + size, bytes.count)]) { found.append(($0, $1)) }
            }
            #expect(found.map(\.0) == [0.062_5, 0.062_5] && found.map(\.1) == [0, 200_000])
        }
    }
}
