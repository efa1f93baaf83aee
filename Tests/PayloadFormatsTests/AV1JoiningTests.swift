import PayloadFormats
import Primitives
import TestSupport
import Testing

@Suite("AV1: joining packets to one frame")
struct AV1JoiningTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var payload: String
        var joining: AV1Joining
        var written: String
        var testDescription: String { name }
    }

    static let cases = [
        Case(name: "one element, to the next", payload: "10 3600aabb", joining: .next, written: "50 3600aabb"),
        Case(
            name: "one element, to the one before", payload: "10 3608aabb", joining: .before, written: "a0 00 3608aabb"),
        Case(
            name: "one element, to both", payload: "10 3608aabb", joining: [.before, .next], written: "e0 00 3608aabb"),
        Case(
            name: "two elements", payload: "20 02 3008 3608aa", joining: .before, written: "b0 00 02 3008 3608aa"),
        Case(
            name: "three elements are counted no more", payload: "30 02 3008 03 2a0811 3608aa", joining: .before,
            written: "80 00 02 3008 03 2a0811 03 3608aa"),
        Case(
            name: "uncounted elements", payload: "00 02 3008 03 3608aa", joining: .before,
            written: "80 00 02 3008 03 3608aa"),
        Case(
            name: "no sequence begins within a frame", payload: "18 3608aa", joining: .before, written: "a0 00 3608aa"),
        Case(
            name: "three elements, cut off", payload: "30 02 3008 7f 2a", joining: .before,
            written: "80 00 02 3008 7f 2a"),
    ]

    @Test("An empty fragment joins a packet to the one before, and the elements are unchanged", arguments: cases)
    func write(one: Case) throws {
        let payload = try #require(ClientCaptures.bytes(one.payload))
        let room = payload.count + payload.withUnsafeBytes { one.joining.growth(of: $0) }
        var output = [UInt8](repeating: 0xee, count: room + 4)
        let count = payload.withUnsafeBytes { source in
            output.withUnsafeMutableBytes { one.joining.write(source, into: $0.baseAddress!) }
        }
        #expect(count == room)
        #expect(Array(output[..<count]) == ClientCaptures.bytes(one.written))
        #expect(output[count...].allSatisfy { $0 == 0xee })
    }

    @Test("A third element of any length is handled", arguments: [1, 127, 128, 1_200, 16_383, 16_384])
    func longElements(length: Int) {
        let payload: [UInt8] = [0x30, 1, 0x10, 1, 0x10] + [UInt8](repeating: 0x10, count: length)
        let growth = payload.withUnsafeBytes { AV1Joining.before.growth(of: $0) }
        var output = [UInt8](repeating: 0, count: payload.count + growth)
        let count = payload.withUnsafeBytes { source in
            output.withUnsafeMutableBytes { AV1Joining.before.write(source, into: $0.baseAddress!) }
        }
        #expect(count == output.count)
        var lengths: [Int] = []
        output.withUnsafeBytes { bytes in
            guard var elements = AV1.Elements(bytes.bytes) else { return }
            while let element = elements.next(in: bytes.bytes) { lengths.append(element.length) }
            #expect(!elements.isMalformed)
        }
        #expect(lengths.first == 0 && lengths.count == 4)
    }
}
