import Primitives
import SDP
import Testing

/// Broken variants of real descriptions, from a seed: whatever comes in, what goes out is a description or an error.
@Suite("Mutated descriptions")
struct MutationTests {
    private func mutate(_ text: String, _ random: inout RandomSource) -> String {
        var lines = text.sdpLines
        for _ in 0..<(1 + random.next() % 6) {
            let index = Int(random.next() % UInt64(lines.count))
            switch random.next() % 6 {
            case 0: lines.remove(at: index)
            case 1: lines.insert(lines[Int(random.next() % UInt64(lines.count))], at: index)
            case 2: lines.swapAt(index, Int(random.next() % UInt64(lines.count)))
            case 3: lines[index] = String(lines[index].prefix(Int(random.next() % 20)))
            case 4:
                lines[index] +=
                    [" 99999999999999999999", ":", " -1", ";;=", " 0/0/0", "\u{fffd}"][Int(random.next() % 6)]
            default:
                var bytes = Array(lines[index].utf8)
                guard !bytes.isEmpty else { continue }
                bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next() % 127)
                lines[index] = String(decoding: bytes, as: UTF8.self)
            }
            if lines.isEmpty { return "" }
        }
        return lines.joined(separator: "\r\n") + "\r\n"
    }

    @Test(
        "D15, L1: mutated offers and answers result in a readable answer or an error",
        arguments: Vectors.all)
    func mutations(_ name: String) throws {
        let text = try Vectors.text(name)
        var random = RandomSource(seed: UInt64(name.utf8.reduce(0) { $0 &* 31 &+ Int($1) } & 0xffff))
        var refused = 0
        for _ in 0..<12 {
            let broken = mutate(text, &random)
            var negotiation = makeNegotiation { $0.acceptsDataChannels = random.next() % 2 == 0 }
            do {
                let outcome = try negotiation.receiveOffer(broken)
                let (placed, _) = negotiation.place([stream(.audio, 1), stream(.video, 2)])
                let answer = try negotiation.makeAnswer(placed.mapValues { SectionAnswer(sending: $0) })
                // An answer that cannot be read is no refusal, so its error does not end up among those.
                let written = try? SessionDescription(parsing: answer.text)
                #expect(written?.sections.count == outcome.sections.count)
            } catch {
                refused += 1
                #expect(negotiation.state == .stable)
            }
            var offering = makeNegotiation()
            _ = try offering.makeOffer(sending: [stream(.audio, 1), stream(.video, 2), stream(.video, 3)])
            do { _ = try offering.receiveAnswer(broken) } catch { #expect(offering.state == .haveLocalOffer) }
        }
        #expect(refused < 12)
    }
}
