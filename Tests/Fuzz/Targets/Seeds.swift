import Foundation
import RTP
import SDP
import TestSupport

/// Inputs to begin with, out of what real clients sent (Tests/Vectors). All of them together are small enough to be replayed in each
/// run of the tests.
enum Seeds {
    /// Every capture, read once: six thousand packets in hexadecimal.
    static let captures = Result { try ClientCaptures.all.map { try Capture($0) } }

    /// Every `step`th packet of each capture.
    private static func packets(step: Int, rtcp: Bool) throws -> [(capture: Capture, packet: CapturedPacket)] {
        try captures.get().flatMap { capture in
            capture.packets.filter { $0.isRTCP == rtcp }.enumerated()
                .filter { $0.offset % step < 2 }.map { (capture, $0.element) }
        }
    }

    @Sendable static func rtp() throws -> [[UInt8]] { try packets(step: 60, rtcp: false).map(\.packet.bytes) }

    @Sendable static func rtcp() throws -> [[UInt8]] { try packets(step: 12, rtcp: true).map(\.packet.bytes) }

    @Sendable static func extensions() throws -> [[UInt8]] {
        try packets(step: 60, rtcp: false).map { capture, packet in
            [3] + capture.elements(of: packet).flatMap { [$0.id] + FuzzInput.record($0.value) }
        }
    }

    @Sendable static func payloads() throws -> [[UInt8]] {
        try packets(step: 40, rtcp: false).compactMap { capture, packet in
            guard let header = capture.header(of: packet), header.payloadLength > 0,
                let codec = ["vp8", "vp9", "h264", "av1", "opus", "red"].firstIndex(
                    of: capture.codecs[header.payloadType] ?? "")
            else { return nil }
            let payload = packet.bytes[header.payloadOffset..<(header.payloadOffset + header.payloadLength)]
            return [UInt8(codec) | (header.marker ? 0x80 : 0)] + payload
        }
    }

    @Sendable static func dependencyDescriptors() throws -> [[UInt8]] {
        try captures.get().compactMap { capture in
            var seed: [UInt8] = []
            for packet in capture.packets where !packet.isRTCP && seed.count < 3_000 {
                for element in capture.elements(of: packet) where capture.meaning[element.id] == "dependency-descriptor"
                {
                    seed += [UInt8(element.value.count)] + element.value
                }
            }
            return seed.isEmpty ? nil : seed
        }
    }

    @Sendable static func descriptions() throws -> [[UInt8]] {
        let folder = Vectors.root.appendingPathComponent("sdp")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".sdp") }
        return try names.sorted().map { [UInt8](try Data(contentsOf: folder.appendingPathComponent($0))) }
    }

    /// Offers and answers of a small client in turn with the server's own, then what browsers wrote.
    @Sendable static func negotiations() throws -> [[UInt8]] {
        let client = ClientDescriptions()
        func offer(_ sections: [ClientDescriptions.Section]) -> [UInt8] {
            [0] + FuzzInput.record(client.offer(sections).utf8)
        }
        var server = NegotiationScript.negotiation()
        let pushed = try server.makeOffer(sending: NegotiationScript.streams).text
        let answer: [UInt8] = [5] + FuzzInput.record(client.answer(to: pushed).utf8)
        let trickle: [UInt8] = [6] + FuzzInput.record("a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\n".utf8)
        let both: [ClientDescriptions.Section] = [.audio("0"), .video("1", rids: ["q", "h", "f"])]
        let receiving: [ClientDescriptions.Section] = both + [.audio("2", "recvonly"), .video("3", "recvonly")]
        var seeds: [[UInt8]] = [
            offer(both) + offer(receiving) + trickle + offer(both.reversed()),
            [4, 5] + answer + [4, 2, 7, 4, 0] + answer,
            offer(receiving) + [4, 3] + answer + offer(receiving) + [2] + offer(receiving).dropFirst() + [3],
            offer([.h264("v"), .audio("a")]) + [4, 5, 7] + offer([.h264("v"), .audio("a"), .video("w", "recvonly")]),
        ]
        for name in [
            "chromium156_reoffer_icerestart_addvideo", "firefox153esr_whip.offer", "chromium156_answer_to_offer",
        ] {
            let text = try Vectors.text("sdp/\(name).sdp")
            seeds.append([0] + FuzzInput.record(text.utf8) + [4, 2] + [5] + FuzzInput.record(text.utf8))
        }
        return seeds
    }

    @Sendable static func trickle() -> [[UInt8]] {
        [
            "candidate:842163049 1 udp 1677729535 203.0.113.7 61703 typ srflx raddr 10.0.0.4 rport 61703 generation 0 ufrag EsAw",
            "a=candidate:1 1 tcp 1518280447 2001:db8::7 9 typ host tcptype active generation 0 network-id 1",
            "candidate:0 1 UDP 2122252543 4a7e7d2c-9c1a-4bb2-8a3d-2f4f3b3f3f3f.local 50741 typ host",
            "a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\na=group:BUNDLE 0 1\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\n"
                + "a=mid:0\r\na=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0\r\n"
                + "a=end-of-candidates\r\n",
        ].map { Array($0.utf8) }
    }

    @Sendable static func stun() throws -> [[UInt8]] {
        let attributes: [UInt8] = [0, 0x24, 0, 4, 0x6e, 0, 1, 0xff, 0x80, 0x2a, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]
        let nominating: [UInt8] = attributes + [0, 0x25, 0, 0]
        let conflict: [UInt8] = [0x80, 0x29, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0x7f, 0xff, 0, 1, 9]
        let mapped: [UInt8] = [0, 0x20, 0, 8, 0, 1, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc]
        var seeds: [[UInt8]] = [
            [2] + FuzzInput.record(nominating) + [5, 60, 4] + FuzzInput.record(mapped) + [5, 200],
            (0..<16).flatMap { [$0 << 4 | 2] + FuzzInput.record(attributes) } + [5, 255],
            [2] + FuzzInput.record(conflict) + [6, 0x13] + FuzzInput.record(nominating) + [7, 5, 70],
        ]
        for name in WireCapture.all {
            seeds.append(try WireCapture.load(name).stunMessages.prefix(4).flatMap { [0] + FuzzInput.record($0) })
        }
        return seeds
    }

    @Sendable static func handshakes() throws -> [[UInt8]] {
        var seeds: [[UInt8]] = [
            [2], [2, 1, 0, 2, 0, 0, 2], [2, 0, 3, 0, 40, 1], [2, 0, 4, 0, 13] + [UInt8](repeating: 22, count: 13),
        ]
        for name in WireCapture.all {
            let hello = try WireCapture.load(name).clientHello.flatMap { FuzzInput.record($0) }
            seeds += [[0] + hello, [1] + hello, [2] + [UInt8](repeating: 0, count: 24) + hello]
        }
        return seeds
    }

    @Sendable static func protected() throws -> [[UInt8]] {
        let media = try packets(step: 100, rtcp: false).map { FuzzInput.record($0.packet.bytes) }
        let reports = try packets(step: 40, rtcp: true).map { FuzzInput.record($0.packet.bytes) }
        return media.enumerated().map { index, packet in
            let report = reports[index % reports.count]
            let damaged = 6 | UInt8(index & 31) << 3
            return join([UInt8(index % 3), 2], packet, [3], report, [damaged], packet, [2], packet)
        }
    }

    @Sendable static func transport() throws -> [[UInt8]] {
        let packet = FuzzInput.record(try packets(step: 300, rtcp: false)[0].packet.bytes.prefix(80))
        let check = FuzzInput.record([])
        return try WireCapture.all.flatMap { name -> [[UInt8]] in
            let capture = try WireCapture.load(name)
            let hello: [UInt8] = capture.clientHello.flatMap { [0] + FuzzInput.record($0) }
            let stun: [UInt8] = capture.stunMessages.prefix(2).flatMap { [2] + FuzzInput.record($0) }
            return (0..<8).map { (state: UInt8) in
                join([state], stun, hello, [5], packet, [6, 20, 7, 3], check)
            }
        }
    }

    /// Packets, time and feedback for the estimator, as its target reads them.
    @Sendable static func histories() -> [[UInt8]] {
        let sent: [UInt8] = (0..<20).flatMap { [0, 0, $0, 4, 0, 2, 0, 250] as [UInt8] }
        let reported: [UInt8] = [0xa3] + (0..<20).flatMap { [0, 0, $0, 8, 0, $0] as [UInt8] }
        return [join(sent, reported, [7], sent), join(sent, [4, 1, 0, 5, 2, 0, 3, 0, 4, 0, 6, 7], reported)]
    }

    /// What real receivers answered, after what they answer to was sent; a clock that goes round; REMB, time, padding and waiting between.
    @Sendable static func answers() throws -> [[UInt8]] {
        let reports = try rtcp()
        let between: [UInt8] = [1, 20, 5, 0, 200, 40, 6, 6, 7, 6, 7]
        return reports.map { join([0xf8], [10], FuzzInput.record($0), between, [0xba], FuzzInput.record($0), [1, 60]) }
            + [[0x08, 4, 255, 1, 50, 4, 40, 0xf8, 7, 7], [0x08, 12, 255, 1, 50, 12, 40, 0xf8, 7, 7]]
    }

    /// One array out of many, without a chain of operators.
    private static func join(_ parts: [UInt8]...) -> [UInt8] { parts.flatMap { $0 } }
}
