import Recorder

/// A place in the frame of a composition, in pixels. All values are even, as encoders require.
struct TileFrame: Hashable {
    var x: Int
    var y: Int
    var width: Int
    var height: Int
}

/// The arrangement of videos in the frame.
struct TileLayout {
    let layout: RecordingJob.Layout
    let width: Int
    let height: Int

    /// Further ones would be too small to recognise.
    static let mostTiles = 25
    /// Small tiles beside a large one.
    static let mostBeside = 6

    /// A video that could be shown.
    struct Video: Hashable {
        var isScreen: Bool
        /// Whether it is the active speaker's.
        var speaks: Bool
        /// Its rank: videos with a lower number began earlier.
        var start: Int64
    }

    /// The place of each video that is shown. Those in front come first.
    func tiles(_ videos: [Video]) -> [(video: Int, frame: TileFrame)] {
        let all = Array(videos.indices)
        let large: Int? =
            switch layout {
            case .grid: nil
            case .speaker: all.first { videos[$0].speaks && !videos[$0].isScreen } ?? all.first
            case .presentation:
                all.filter { videos[$0].isScreen }.max { (videos[$0].start, $0) < (videos[$1].start, $1) }
            }
        guard let large, videos.count > 1 else { return grid(all) }
        var beside = all.filter { $0 != large }
        // The active speaker is among them, whatever its rank.
        if let speaker = beside.first(where: { videos[$0].speaks }), !beside.prefix(Self.mostBeside).contains(speaker) {
            beside.removeAll { $0 == speaker }
            beside.insert(speaker, at: 0)
        }
        return strip(large, Array(beside.prefix(Self.mostBeside)))
    }

    /// Rows of equal tiles; the last row is centred.
    private func grid(_ all: [Int]) -> [(video: Int, frame: TileFrame)] {
        let shown = all.prefix(Self.mostTiles)
        guard !shown.isEmpty else { return [] }
        let columns = (1...shown.count).first { $0 * $0 >= shown.count } ?? 1
        let rows = (shown.count + columns - 1) / columns
        let (tileWidth, tileHeight) = (Self.even(width / columns), Self.even(height / rows))
        return shown.enumerated().map { place, video in
            let (row, column) = (place / columns, place % columns)
            let inRow = row == rows - 1 ? shown.count - row * columns : columns
            let left = Self.even((width - inRow * tileWidth) / 2), top = Self.even((height - rows * tileHeight) / 2)
            return (
                video,
                TileFrame(x: left + column * tileWidth, y: top + row * tileHeight, width: tileWidth, height: tileHeight)
            )
        }
    }

    /// One large tile; the others are below it, or, if it is a screen, to its right.
    private func strip(_ large: Int, _ beside: [Int]) -> [(video: Int, frame: TileFrame)] {
        if layout == .presentation {
            let side = Self.even(width / 5), tall = Self.even(height / Self.mostBeside)
            let top = Self.even((height - beside.count * tall) / 2)
            return [(large, TileFrame(x: 0, y: 0, width: Self.even(width - side), height: Self.even(height)))]
                + beside.enumerated().map {
                    (
                        $1,
                        TileFrame(x: Self.even(width - side), y: top + $0 * tall, width: side, height: tall)
                    )
                }
        }
        let low = Self.even(height / 5), wide = Self.even(width / Self.mostBeside)
        let left = Self.even((width - beside.count * wide) / 2)
        return [(large, TileFrame(x: 0, y: 0, width: Self.even(width), height: Self.even(height - low)))]
            + beside.enumerated().map {
                ($1, TileFrame(x: left + $0 * wide, y: Self.even(height - low), width: wide, height: low))
            }
    }

    private static func even(_ number: Int) -> Int { number & ~1 }
}
