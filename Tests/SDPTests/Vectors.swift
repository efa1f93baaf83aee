import Foundation
import Primitives
import SDP

/// Offers and answers that real clients sent, and golden answers reviewed by eye.
enum Vectors {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Vectors/sdp")

    /// Names without ".sdp" of everything captured.
    static let all: [String] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(".sdp") }.map { String($0.dropLast(4)) }.sorted()
    }()

    /// Those that are offers.
    static let offers = all.filter { !$0.hasSuffix(".answer") && $0 != "chromium156_answer" }

    static func text(_ name: String) throws -> String {
        try String(contentsOf: folder.appendingPathComponent(name + ".sdp"), encoding: .utf8)
    }
}

/// A server end with round values.
let testTransport = LocalTransport(
    iceUfrag: "martlet0", icePassword: "martlet0martlet0martlet0",
    fingerprintSHA256: (0..<32).map { UInt8($0 * 8) },
    candidates: [
        Candidate(foundation: "1", address: "192.0.2.1", port: 7900),
        Candidate(foundation: "2", address: "2001:db8::1", port: 7900, localPreference: 65534),
    ])

func makeNegotiation(_ change: (inout NegotiationPolicy) -> Void = { _ in }) -> Negotiation {
    var policy = NegotiationPolicy()
    change(&policy)
    return Negotiation(sessionID: 4_611_686_018_427_387_904, policy: policy, transport: testTransport)
}

/// Something to send, with names that follow from a number.
func stream(_ kind: SectionKind, _ number: UInt32, formats: [NegotiatedFormat]? = nil) -> LocalSending {
    LocalSending(
        kind: kind, ssrc: number * 10, rtxSSRC: kind == .video ? number * 10 + 1 : nil, cname: "martlet",
        streamID: "stream\(number)", trackID: "track\(number)", formats: formats)
}

extension String {
    /// Lines without their ends.
    var sdpLines: [String] { split(whereSeparator: \.isNewline).map(String.init) }

    /// The lines of m-section `index`.
    func section(_ index: Int) -> [String] {
        var sections: [[String]] = []
        for line in sdpLines {
            if line.hasPrefix("m=") { sections.append([]) }
            if !sections.isEmpty { sections[sections.count - 1].append(line) }
        }
        return sections[index]
    }
}

/// A minimal offer for table tests: a bundle of sections, each given by its lines from `m=` on.
func offer(
    _ sections: [[String]], session: [String] = [], setup: String = "actpass", ufrag: String = "abcd",
    version: Int = 1
) -> String {
    let mids = sections.flatMap { $0.filter { $0.hasPrefix("a=mid:") }.map { $0.dropFirst(6) } }
    var lines = ["v=0", "o=- 1 \(version) IN IP4 127.0.0.1", "s=-", "t=0 0"]
    lines.append("a=group:BUNDLE " + mids.joined(separator: " "))
    lines += session
    for section in sections {
        lines += section
        lines += [
            "a=ice-ufrag:\(ufrag)", "a=ice-pwd:0123456789abcdefghijkl", "a=setup:\(setup)",
            "a=fingerprint:sha-256 " + Array(repeating: "AB", count: 32).joined(separator: ":"), "a=rtcp-mux",
        ]
    }
    return lines.joined(separator: "\r\n") + "\r\n"
}

/// Lines of a section with Opus, as browsers write it.
func audioSection(_ mid: String, _ direction: String, port: Int = 9) -> [String] {
    [
        "m=audio \(port) UDP/TLS/RTP/SAVPF 111", "a=mid:\(mid)", "a=\(direction)", "a=rtpmap:111 opus/48000/2",
        "a=fmtp:111 minptime=10;useinbandfec=1", "a=extmap:4 \(ExtensionURI.mid)",
    ]
}

/// Lines of a section with VP8 and retransmissions.
func videoSection(_ mid: String, _ direction: String, port: Int = 9) -> [String] {
    [
        "m=video \(port) UDP/TLS/RTP/SAVPF 96 97", "a=mid:\(mid)", "a=\(direction)", "a=rtpmap:96 VP8/90000",
        "a=rtcp-fb:96 nack", "a=rtcp-fb:96 nack pli", "a=rtpmap:97 rtx/90000", "a=fmtp:97 apt=96",
        "a=extmap:4 \(ExtensionURI.mid)",
    ]
}
