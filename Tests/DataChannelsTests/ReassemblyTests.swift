import Primitives
import Testing

@testable import DataChannels

@Suite struct ReassemblyTests {
    /// Whole messages, and how many were examined in searches among them.
    private struct Feed {
        var reassembly = Reassembly(longestMessage: 1_000)
        private(set) var examined = 0
        private var tsn: UInt32 = 100

        init() {}

        /// Adds a message on a stream.
        mutating func add(stream: UInt16) {
            let number = tsn
            tsn += 1
            var value: [UInt8] = []
            value.append(number: number)
            value.append(number: stream)
            value.append(number: UInt16(0))
            value.append(number: UInt32(53))
            value.append(1)
            value.withUnsafeBytes { bytes in
                let chunk = PacketReader.Chunk(
                    type: ChunkType.data.rawValue,
                    flags: DataChunk.beginFlag | DataChunk.endFlag | DataChunk.unorderedFlag, value: bytes)
                if let data = DataChunk(chunk) { _ = reassembly.insert(data, tsn: Int64(number)) }
            }
        }

        /// The index of the oldest message on a stream.
        mutating func find(on stream: UInt16) -> Int? {
            var count = 0
            let found = reassembly.first(where: { message in
                count += 1
                return message.stream == stream
            })
            examined += count
            return found?.index
        }
    }

    @Test("A message that no search is for is examined once, however often there is a search")
    func examinedOnce() {
        var feed = Feed()
        for _ in 0..<500 { feed.add(stream: 0) }
        for _ in 0..<10 {
            let none = feed.find(on: 1)
            #expect(none == nil)
        }
        #expect(feed.examined == 500)
        feed.add(stream: 1)
        feed.add(stream: 0)
        // It stays until it is removed, and is found again.
        for _ in 0..<2 {
            let found = feed.find(on: 1)
            #expect(found == 500)
        }
        #expect(feed.examined == 502)
        let message = feed.reassembly.remove(at: 500)
        #expect(message?.stream == 1)
        for _ in 0..<200 { _ = feed.reassembly.remove(at: 0) }
        feed.add(stream: 1)
        let later = feed.find(on: 1)
        #expect(later == 301)
        #expect(feed.examined == 504)
    }

    @Test("What was examined in vain is found when others are meant; removals leave the search where it was")
    func searchAgain() {
        var feed = Feed()
        for stream in [0, 1, 0] as [UInt16] { feed.add(stream: stream) }
        var found = feed.find(on: 2)
        #expect(found == nil)
        feed.reassembly.searchAgain()
        found = feed.find(on: 1)
        #expect(found == 1)
        found = feed.find(on: 2)
        #expect(found == nil)
        // One of those that were examined.
        _ = feed.reassembly.remove(at: 1)
        feed.add(stream: 2)
        found = feed.find(on: 2)
        #expect(found == 2)
        while feed.reassembly.remove(at: 0) != nil {}
        feed.add(stream: 1)
        found = feed.find(on: 1)
        #expect(found == 0)
        #expect(feed.reassembly.cost == 1 + Reassembly.overhead)
    }
}
