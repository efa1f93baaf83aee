import Foundation
import SDP
import Testing

@Suite("Answers to captured offers")
struct GoldenAnswerTests {
    /// The answer of a server that takes everything and sends something on every section that only receives.
    static func answer(_ name: String) throws -> String {
        var negotiation = makeNegotiation()
        let outcome = try negotiation.receiveOffer(try Vectors.text(name))
        var answers: [String: SectionAnswer] = [:]
        for section in outcome.sections where section.remoteReceives && section.remoteSends == nil {
            answers[section.mid] = SectionAnswer(sending: stream(section.kind, UInt32(section.index + 1)))
        }
        return try negotiation.makeAnswer(answers).text
    }

    /// `MARTLET_WRITE_GOLDEN=1 swift test --filter SDPTests` writes them anew; review the difference by eye.
    @Test("Every captured offer is answered as reviewed", arguments: Vectors.offers)
    func golden(_ name: String) throws {
        let answer = try Self.answer(name)
        let file = Vectors.folder.appendingPathComponent("golden/\(name).answer.sdp")
        if ProcessInfo.processInfo.environment["MARTLET_WRITE_GOLDEN"] != nil {
            try answer.write(to: file, atomically: true, encoding: .utf8)
        }
        let golden = try String(contentsOf: file, encoding: .utf8)
        #expect(answer == golden)
    }

    @Test("The captures contain offers of all clients")
    func offersAreThere() {
        #expect(Vectors.offers.count >= 40)
        for client in ["chromium", "firefox", "gst", "ffmpeg"] {
            #expect(Vectors.offers.contains { $0.contains(client) })
        }
    }

    @Test("Parsing a captured description and writing it gives the same bytes", arguments: Vectors.all)
    func roundTrip(_ name: String) throws {
        let text = try Vectors.text(name)
        let written = try SessionDescription(parsing: text).text
        #expect(written.sdpLines == text.sdpLines)
    }

    @Test("The server can read its own answers", arguments: Vectors.offers)
    func answersAreReadable(_ name: String) throws {
        let offered = try SessionDescription(parsing: try Vectors.text(name))
        let answer = try SessionDescription(parsing: try Self.answer(name))
        #expect(answer.sections.map(\.media) == offered.sections.map(\.media))
        for (mine, theirs) in zip(answer.sections, offered.sections) {
            #expect(mine.attributes.first("mid") == theirs.attributes.first("mid"))
            #expect(mine.proto == theirs.proto)
            #expect(Set(mine.formats).isSubset(of: theirs.formats))
            let ids = Set(theirs.attributes.all("extmap").map { $0.split { $0 == " " || $0 == "/" }.first })
            #expect(
                Set(mine.attributes.all("extmap").map { $0.split { $0 == " " || $0 == "/" }.first }).isSubset(of: ids))
        }
    }
}
