import Foundation
import SDP
import Testing

@Suite("Captured answers")
struct CapturedAnswerTests {
    /// Answers that real clients gave to other servers.
    static let answers = Vectors.all.filter { $0.hasSuffix(".answer") || $0 == "chromium156_answer" }

    /// `MARTLET_WRITE_GOLDEN=1 swift test --filter SDPTests` writes them anew; review the difference by eye.
    @Test("Every captured answer is read as reviewed", arguments: answers)
    func golden(_ name: String) throws {
        let report = try Self.report(name)
        let file = Vectors.folder.appendingPathComponent("golden/\(name).facts.txt")
        if ProcessInfo.processInfo.environment["MARTLET_WRITE_GOLDEN"] != nil {
            try report.write(to: file, atomically: true, encoding: .utf8)
        }
        #expect(try String(contentsOf: file, encoding: .utf8) == report)
    }

    /// What the server reads in the answer when it had offered the same kinds of sections.
    private static func report(_ name: String) throws -> String {
        var answer = try SessionDescription(parsing: try Vectors.text(name))
        answer.sections.removeAll { $0.media == "application" }
        var negotiation = makeNegotiation()
        let sending = answer.sections.enumerated().map { index, section in
            stream(section.media == "audio" ? .audio : .video, UInt32(index + 1))
        }
        let offer = try negotiation.makeOffer(sending: sending)
        // The answer names the mids of the offer that it was for.
        for (index, mid) in offer.mids.enumerated() { replace("mid", by: mid, in: &answer.sections[index].attributes) }
        replace("group", by: "BUNDLE " + offer.mids.joined(separator: " "), in: &answer.attributes)
        do throws(NegotiationError) {
            return try describe(negotiation.receiveAnswer(answer.text))
        } catch {
            return "refused: \(error)\n"
        }
    }

    private static func replace(_ name: String, by value: String, in attributes: inout [DescriptionAttribute]) {
        for index in attributes.indices where attributes[index].name == name { attributes[index].value = value }
    }

    private static func describe(_ accepted: AcceptedAnswer) -> String {
        var lines: [String] = []
        if let transport = accepted.transport {
            let candidates = transport.candidates.map { "\($0.kind) \($0.transport) \($0.address)" }
            lines.append(
                "transport \(transport.iceUfrag), the server is \(transport.localSetup), candidates \(candidates)"
                    + "\(transport.endOfCandidates ? ", no more" : "")\(transport.supportsTrickle ? ", trickles" : "")")
        }
        for section in accepted.sections {
            lines.append(
                "\(section.index) \(section.kind) mid \(section.mid) \(section.direction)"
                    + "\(section.refusal.map { ", refused: \($0.rawValue)" } ?? "")")
            guard let sending = section.sending else { continue }
            for format in sending.formats {
                lines.append(
                    "  \(format.codec.rawValue) \(format.payloadType) rtx \(format.rtxPayloadType.map(String.init) ?? "-")"
                        + " variant '\(format.variant)' feedback \(format.feedback.rawValue)")
            }
            for mapping in sending.extensions { lines.append("  extension \(mapping.id) \(mapping.uri)") }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
