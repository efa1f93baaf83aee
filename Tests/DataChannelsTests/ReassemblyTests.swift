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

        /// Adds an ordered message of one byte, its sequence number.
        mutating func add(stream: UInt16, sequence: UInt16) {
            let number = tsn
            tsn += 1
            var value: [UInt8] = []
            value.append(number: number)
            value.append(number: stream)
            value.append(number: sequence)
            value.append(number: UInt32(53))
            value.append(UInt8(truncatingIfNeeded: sequence))
            value.withUnsafeBytes { bytes in
                let chunk = PacketReader.Chunk(
                    type: ChunkType.data.rawValue, flags: DataChunk.beginFlag | DataChunk.endFlag, value: bytes)
                if let data = DataChunk(chunk) { _ = reassembly.insert(data, tsn: Int64(number)) }
            }
        }

        /// Takes all whole messages: stream and sequence number of each.
        mutating func takeAll() -> [[UInt16]] {
            var all: [[UInt16]] = []
            while let message = reassembly.remove(at: 0) { all.append([message.stream, UInt16(message.payload[0])]) }
            return all
        }

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

    @Test(
        "Ordered messages wait for those before them on their own stream, in any order of arrival, until these come or are given up"
    )
    func order() {
        var feed = Feed()
        for sequence: UInt16 in [3, 1, 4, 1, 6, 2] { feed.add(stream: 7, sequence: sequence) }
        feed.add(stream: 8, sequence: 1)
        #expect(feed.takeAll() == [])
        feed.add(stream: 7, sequence: 0)
        #expect(feed.takeAll() == [[7, 0], [7, 1], [7, 2], [7, 3], [7, 4]])
        feed.reassembly.skip(stream: 7, to: 5)
        #expect(feed.takeAll() == [[7, 6]])
        feed.reassembly.skip(stream: 8, to: 0)
        #expect(feed.takeAll() == [[8, 1]])
        #expect(feed.reassembly.cost == 0)
        feed.add(stream: 8, sequence: 9)
        feed.reassembly.reset(stream: 8)
        feed.add(stream: 8, sequence: 0)
        #expect(feed.takeAll() == [[8, 0]])
        #expect(feed.reassembly.cost == 0 && !feed.reassembly.isCrowded)
    }

    @Test(
        "A reset of streams that is deferred is performed when it is repeated, under its own number (usrsctp) or the next one (dcsctp), and once",
        arguments: [UInt32(0), 1])
    func deferredReset(step: UInt32) {
        var resets = StreamReset(firstTSN: 1, peerFirstTSN: 500)
        /// The result for a request (RFC 6525 section 4.4), and the streams that were reset.
        func request(_ sequence: UInt32, isHeld: Bool) -> (result: UInt8?, streams: [UInt16]?) {
            var value: [UInt8] = [], bytes: [UInt8] = []
            for number in [sequence, 0, 600] { value.append(number: number) }
            value.append(number: UInt16(3))
            bytes.append(parameter: 13, value)
            let outcome = bytes.withUnsafeBytes {
                resets.receive($0, cumulative: 700, at: MonotonicTime(milliseconds: 1_000), holds: { _ in isHeld })
            }
            return (outcome.answer.count >= 12 ? outcome.answer[11] : nil, outcome.peerReset)
        }
        for (number, isHeld) in [(UInt32(0), true), (1, true), (2, false)] {
            let outcome = request(500 + number * step, isHeld: isHeld)
            #expect(outcome.result == (isHeld ? 6 : 1))
            #expect(outcome.streams == (isHeld ? nil : [3]))
        }
        let again = request(500 + 2 * step, isHeld: false)
        #expect(again.result == 1 && again.streams == nil)
        #expect(request(500 + 2 * step + 2, isHeld: false).result == 5, "a number that no request has")
    }

    @Test(
        "A request that the peer answers \"in progress\" comes again under the next number, and ends with the answer to that"
    )
    func requestInProgress() {
        var resets = StreamReset(firstTSN: 7, peerFirstTSN: 500), now = MonotonicTime(milliseconds: 1_000)
        /// The number and the streams of the request that is written now; nil when none is due.
        func written() -> [UInt32]? {
            guard resets.isDue(at: now, isDrained: { _ in true }) else { return nil }
            var bytes = [UInt8](repeating: 0, count: PacketSize.largest)
            let length = bytes.withUnsafeMutableBytes { buffer -> Int in
                var packet = PacketWriter(buffer, from: 5_000, to: 5_000, tag: 1)
                resets.write(into: &packet, last: 20, timeout: .milliseconds(200), at: now, isDrained: { _ in true })
                return packet.isEmpty ? 0 : packet.length
            }
            guard length > 0 else { return nil }
            // After the headers of the packet, the chunk and the parameter: three numbers, then streams.
            return bytes.withUnsafeBytes { buffer -> [UInt32] in
                let end = 16 + Int(buffer.bytes.readUInt16(18))
                return [buffer.bytes.readUInt32(20)]
                    + stride(from: 32, to: end, by: 2).map { UInt32(buffer.bytes.readUInt16($0)) }
            }
        }
        func completed(by result: UInt32, to sequence: UInt32) -> [UInt16] {
            var value: [UInt8] = [], bytes: [UInt8] = []
            for number in [sequence, result] { value.append(number: number) }
            bytes.append(parameter: 16, value)
            return bytes.withUnsafeBytes {
                resets.receive($0, cumulative: 499, at: now, holds: { _ in false }).completed
            }
        }
        func pass() { now = now + .milliseconds(200) }
        resets.close(2)
        #expect(written() == [7, 2])
        #expect(completed(by: 6, to: 7) == [])
        #expect(written() == nil, "not before the timer expires")
        pass()
        #expect(written() == [8, 2])
        #expect(completed(by: 6, to: 7) == [], "the first answer, late")
        pass()
        #expect(written() == [8, 2], "no answer came")
        #expect(completed(by: 1, to: 8) == [2])
        resets.close(4)
        #expect(written() == [9, 4])
        #expect(completed(by: 6, to: 9) == [])
        #expect(completed(by: 1, to: 9) == [4], "usrsctp answers again when it has everything")
        // The peer uses a stream again: without those that are known to be done a request would be for all streams.
        resets.close(6)
        #expect(written() == [10, 6])
        let isKnown = resets.forget(6), isKnownAgain = resets.forget(6)
        #expect(isKnown && !isKnownAgain)
        pass()
        #expect(written() == [10, 6])
        #expect(completed(by: 1, to: 10) == [])
        resets.close(6)
        #expect(written() == [11, 6])
        #expect(completed(by: 6, to: 11) == [])
        _ = resets.forget(6)
        pass()
        #expect(written() == nil)
        resets.close(8)
        #expect(written() == [12, 8])
        #expect(completed(by: 1, to: 12) == [8])
        #expect(resets.isIdle)
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
