import EdgeSupport
import Foundation
import ICE

extension OperatorCommand {
    /// The most rooms that are opened: they are assigned to the media threads in turn if all are equally busy.
    private static let rooms = 16
    /// After so many rooms in a row on known media threads, there are no more threads, or the others are busier.
    private static let repetitions = 3

    /// Probes every media port of the server from this machine, as clients do, without media: in rooms of pre-call checks, which are visible to nobody else.
    func reach(_ output: @escaping (String) -> Void) throws(CommandError) {
        var asked: [(port: MediaPort, milliseconds: Double?)] = []
        var sessions: [() -> Void] = []
        defer { for end in sessions { end() } }
        var isMissing = false
        var stale = 0
        for number in 0..<Self.rooms where stale < Self.repetitions {
            let check: JSONValue
            do throws(CommandError) {
                check = try client.call("POST", "/checks").value
            } catch  where number > 0 {
                // The server allows no more at once.
                break
            }
            let (local, offer) = Self.offer()
            let session = try client.publish(offer, room: check["room"].cell, token: check["senderToken"].cell)
            sessions.append(session.end)
            let answer = session.answer.split(whereSeparator: \.isNewline)
            func values(_ name: String) -> [Substring] {
                answer.filter { $0.hasPrefix("a=\(name):") }.map { $0.dropFirst(name.count + 3) }
            }
            let ports = values("candidate").compactMap { MediaPort(candidate: $0) }
            guard let ufrag = values("ice-ufrag").first, let password = values("ice-pwd").first, !ports.isEmpty else {
                throw CommandError(message: "martlet: the server's answer names no media port", exitCode: 1)
            }
            let fresh = ports.filter { port in !asked.contains { $0.port == port } }
            stale = fresh.isEmpty ? stale + 1 : 0
            let remote = ICECredential(ufrag: String(ufrag), password: String(password))
            asked += fresh.map { ($0, $0.ask(local: local, remote: remote)) }
            // A client needs only one address per transport, and a machine with one address family cannot reach addresses of the other.
            for isTCP in [false, true] {
                let kind = ports.filter { $0.isTCP == isTCP }
                let isReached = asked.contains { kind.contains($0.port) && $0.milliseconds != nil }
                if !kind.isEmpty, !isReached { isMissing = true }
            }
        }
        output(given.has("--json") ? Self.text(ofReached: asked) : Self.table(ofReached: asked))
        guard isMissing else { return }
        throw CommandError(
            message: "martlet: not every media port answers here; let UDP and TCP through to them, or see "
                + "media.announced_addresses", exitCode: 1)
    }

    private static func table(ofReached asked: [(port: MediaPort, milliseconds: Double?)]) -> String {
        var table = TextTable("MEDIA PORT", "ANSWER")
        for (port, milliseconds) in asked {
            table.add(port.text, milliseconds.map { "after \(($0 * 10).rounded() / 10) ms" } ?? "none")
        }
        return table.text
    }

    private static func text(ofReached asked: [(port: MediaPort, milliseconds: Double?)]) -> String {
        JSONCoding.encodeText(
            JSONValue.array(
                asked.map { port, milliseconds in
                    .object([
                        "transport": .text(port.isTCP ? "tcp" : "udp"), "address": .text(port.host),
                        "port": .integer(Int64(port.port)), "milliseconds": milliseconds.map { .number($0) } ?? .null,
                    ])
                }))
    }

    /// A minimal offer of audio, with every codec that the server's rooms may permit.
    private static func offer() -> (ICECredential, String) {
        var random = SystemRandomNumberGenerator()
        func text(_ bytes: Int) -> String {
            (0..<bytes).map { _ in String(format: "%02x", UInt8.random(in: .min ... .max, using: &random)) }.joined()
        }
        let (ufrag, password) = (text(4), text(12))
        let fingerprint = (0..<32).map { _ in text(1).uppercased() }.joined(separator: ":")
        let lines = [
            "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0",
            "m=audio 9 UDP/TLS/RTP/SAVPF 111 0 8 9", "c=IN IP4 0.0.0.0", "a=rtcp-mux", "a=mid:0", "a=sendonly",
            "a=setup:actpass", "a=ice-ufrag:\(ufrag)", "a=ice-pwd:\(password)", "a=fingerprint:sha-256 \(fingerprint)",
            "a=rtpmap:111 opus/48000/2", "a=rtpmap:0 PCMU/8000", "a=rtpmap:8 PCMA/8000", "a=rtpmap:9 G722/8000",
            "a=ssrc:\(UInt32.random(in: 1 ... .max, using: &random)) cname:reach", "",
        ]
        return (ICECredential(ufrag: ufrag, password: password), lines.joined(separator: "\r\n"))
    }
}
