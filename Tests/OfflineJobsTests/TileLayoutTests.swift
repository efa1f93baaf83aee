import Recorder
import Testing

@testable import OfflineJobs

@Suite("Who is where in a composition")
struct TileLayoutTests {
    private func tiles(
        _ layout: TileLayout, _ videos: [(isScreen: Bool, speaks: Bool)]
    ) -> [(video: Int, frame: TileFrame)] {
        layout.tiles(
            videos.enumerated().map {
                TileLayout.Video(isScreen: $1.isScreen, speaks: $1.speaks, start: Int64($0))
            })
    }

    @Test("Grids of 1 to 25 are within the frame, even, of one size and without overlap", arguments: 1...25)
    func grid(count: Int) {
        let layout = TileLayout(layout: .grid, width: 1_280, height: 720)
        let found = tiles(layout, Array(repeating: (false, false), count: count))
        #expect(found.map(\.video) == Array(0..<count))
        #expect(Set(found.map { [$0.frame.width, $0.frame.height] }).count == 1)
        for (index, tile) in found.enumerated() {
            let frame = tile.frame
            #expect([frame.x, frame.y, frame.width, frame.height].allSatisfy { $0 >= 0 && $0 % 2 == 0 })
            #expect(frame.width > 0 && frame.height > 0)
            #expect(frame.x + frame.width <= 1_280 && frame.y + frame.height <= 720)
            for other in found[..<index].map(\.frame) {
                let isApart =
                    other.x + other.width <= frame.x || frame.x + frame.width <= other.x
                    || other.y + other.height <= frame.y || frame.y + frame.height <= other.y
                #expect(isApart)
            }
        }
    }

    @Test("One video fills the frame, two halves are beside each other, and of three the last is centred")
    func small() {
        let layout = TileLayout(layout: .grid, width: 640, height: 360)
        #expect(tiles(layout, [(false, false)]).map(\.frame) == [TileFrame(x: 0, y: 0, width: 640, height: 360)])
        #expect(
            tiles(layout, [(false, false), (false, false)]).map(\.frame) == [
                TileFrame(x: 0, y: 0, width: 320, height: 360), TileFrame(x: 320, y: 0, width: 320, height: 360),
            ])
        #expect(
            tiles(layout, Array(repeating: (false, false), count: 3)).map(\.frame).last
                == TileFrame(x: 160, y: 180, width: 320, height: 180))
        #expect(tiles(layout, []).isEmpty)
    }

    @Test("Of 30 videos a grid shows the first 25")
    func most() {
        let layout = TileLayout(layout: .grid, width: 1_920, height: 1_080)
        #expect(tiles(layout, Array(repeating: (false, false), count: 30)).map(\.video) == Array(0..<25))
    }

    @Test("Who speaks is large, with the others below; without a speaker it is the first")
    func speaker() {
        let layout = TileLayout(layout: .speaker, width: 1_280, height: 720)
        let found = tiles(layout, [(false, false), (false, true), (false, false)])
        #expect(found.map(\.video) == [1, 0, 2])
        #expect(found[0].frame == TileFrame(x: 0, y: 0, width: 1_280, height: 576))
        #expect(found.dropFirst().allSatisfy { $0.frame.y == 576 && $0.frame.height == 144 })
        #expect(tiles(layout, [(false, false), (false, false)]).map(\.video) == [0, 1])
        #expect(tiles(layout, [(false, true)]).map(\.frame) == [TileFrame(x: 0, y: 0, width: 1_280, height: 720)])
    }

    @Test(
        "The latest screen is large, with the others at its right and the speaker among them; without one it is a grid")
    func presentation() {
        let layout = TileLayout(layout: .presentation, width: 1_280, height: 720)
        let videos = Array(repeating: (false, false), count: 8) + [(true, false), (true, false), (false, true)]
        let found = tiles(layout, videos)
        #expect(found.map(\.video) == [9, 10, 0, 1, 2, 3, 4])
        #expect(found[0].frame == TileFrame(x: 0, y: 0, width: 1_024, height: 720))
        #expect(found.dropFirst().allSatisfy { $0.frame.x == 1_024 && $0.frame.x + $0.frame.width <= 1_280 })
        #expect(tiles(layout, [(false, false), (false, false)]).map(\.frame.width) == [640, 640])
    }
}
