import Recorder

/// A part of a composition in which the same videos are in the same places.
struct Scene: Hashable {
    /// A video in its place.
    struct Tile: Hashable {
        /// Its index among the timeline's parts.
        var part: Int
        var frame: TileFrame
    }

    /// The range in frames of the composition, from its first.
    var frames: Range<Int64>
    /// Empty: black.
    var tiles: [Tile]
}

/// Divides a recording into scenes: a new one begins when a video begins or ends, or when the active speaker changes.
struct SceneList {
    private let parts: [RecordingTimeline.Part]
    /// When each part is shown; parts of one track do not overlap.
    private let spans: [[Range<Int64>]]
    private let length: Int64
    private let frameRate: Int

    /// If a track continues in another file, or after a gap, within this time, its last frame stays.
    private static let longestBridge: Int64 = 2_000_000
    /// Nobody notices what is shown for a shorter time.
    private static let shortestScene: Int64 = 400_000

    init(_ timeline: RecordingTimeline, frameRate: Int) {
        parts = timeline.parts
        length = timeline.length
        self.frameRate = frameRate
        spans = Self.bridged(timeline.parts)
    }

    /// The scenes of the whole recording, without a gap.
    func scenes(_ layout: TileLayout, turns: [SpeakerFinder.Turn] = []) -> [Scene] {
        let end = frame(length)
        guard end > 0 else { return [] }
        // Speakers count if they decide the arrangement.
        let moments =
            spans.flatMap { $0.flatMap { [$0.lowerBound, $0.upperBound] } }
            + (layout.layout == .grid ? [] : turns.map(\.start))
        let shortest = max(1, frame(Self.shortestScene))
        var bounds: [Int64] = [0]
        for bound in Set(moments.map(frame)).sorted() where bound > 0 && bound < end {
            // Of changes in quick succession only the last state counts.
            if bound - bounds[bounds.count - 1] >= shortest {
                bounds.append(bound)
            } else if bounds.count > 1 {
                bounds[bounds.count - 1] = bound
            }
        }
        if bounds.count > 1, end - bounds[bounds.count - 1] < shortest { bounds.removeLast() }
        var scenes: [Scene] = []
        for (index, start) in bounds.enumerated() {
            let next = index + 1 < bounds.count ? bounds[index + 1] : end
            let tiles = tiles(layout, at: (moment(start) + moment(next)) / 2, turns)
            if let last = scenes.last, last.tiles == tiles {
                scenes[scenes.count - 1].frames = last.frames.lowerBound..<next
            } else {
                scenes.append(Scene(frames: start..<next, tiles: tiles))
            }
        }
        return scenes
    }

    private func tiles(_ layout: TileLayout, at moment: Int64, _ turns: [SpeakerFinder.Turn]) -> [Scene.Tile] {
        let shown = parts.indices.filter { index in spans[index].contains { $0.contains(moment) } }
        let present = Set(shown.filter { !parts[$0].isScreen }.map { parts[$0].participant })
        // A speaker who is not shown changes nothing.
        let speaker = turns.last { $0.start <= moment && present.contains($0.participant) }?.participant
        let videos = shown.map {
            TileLayout.Video(
                isScreen: parts[$0].isScreen, speaks: !parts[$0].isScreen && parts[$0].participant == speaker,
                start: parts[$0].start)
        }
        return layout.tiles(videos).map { Scene.Tile(part: shown[$0.video], frame: $0.frame) }
    }

    private func frame(_ moment: Int64) -> Int64 { (moment * Int64(frameRate) + 500_000) / 1_000_000 }
    private func moment(_ frame: Int64) -> Int64 { frame * 1_000_000 / Int64(frameRate) }

    /// The spans of videos: short gaps between those of a track are closed, and if two overlap, the earlier one ends when the later one begins.
    private static func bridged(_ parts: [RecordingTimeline.Part]) -> [[Range<Int64>]] {
        var spans = parts.map { $0.isVideo ? $0.spans : [] }
        for track in Set(parts.map(\.track)) {
            let places = parts.indices.filter { parts[$0].track == track }
                .flatMap { part in spans[part].indices.map { (part: part, span: $0) } }
                .sorted { spans[$0.part][$0.span].lowerBound < spans[$1.part][$1.span].lowerBound }
            for (place, next) in zip(places, places.dropFirst()) {
                let span = spans[place.part][place.span], begin = spans[next.part][next.span].lowerBound
                if begin - span.upperBound < longestBridge {
                    spans[place.part][place.span] = span.lowerBound..<max(span.lowerBound, begin)
                }
            }
        }
        return spans
    }
}
