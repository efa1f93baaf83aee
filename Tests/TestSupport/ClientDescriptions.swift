/// Session descriptions as a small WebRTC client writes them, for tests of the code that answers them.
public struct ClientDescriptions: Sendable {
    /// One m-section of an offer.
    public struct Section: Sendable {
        public var mid: String
        public var kind: String
        public var direction: String
        /// msid track id; nil: no msid line.
        public var track: String?
        /// rids of simulcast; empty: a plain stream.
        public var rids: [String]
        /// rtpmap, fmtp and rtcp-fb lines with their payload types.
        public var codecs: [(payloadType: Int, map: String, fmtp: String?)]
        /// More lines.
        public var extra: [String]

        /// Opus that is sent, or received with another direction.
        public static func audio(
            _ mid: String, _ direction: String = "sendonly", track: String? = nil,
            fmtp: String = "minptime=10;useinbandfec=1"
        ) -> Self {
            Section(
                mid: mid, kind: "audio", direction: direction, track: track ?? "audio-\(mid)", rids: [],
                codecs: [(111, "opus/48000/2", fmtp)], extra: [])
        }

        /// VP8 (or `codecs`) with retransmissions.
        public static func video(
            _ mid: String, _ direction: String = "sendonly", track: String? = nil, rids: [String] = [],
            codecs: [(payloadType: Int, map: String, fmtp: String?)] = [
                (96, "VP8/90000", nil), (97, "rtx/90000", "apt=96"),
            ]
        ) -> Self {
            Section(
                mid: mid, kind: "video", direction: direction, track: track ?? "video-\(mid)", rids: rids,
                codecs: codecs, extra: [])
        }

        /// H.264 constrained baseline, mode 1.
        public static func h264(_ mid: String, _ direction: String = "sendonly", profile: String = "42e01f") -> Self {
            video(
                mid, direction,
                codecs: [
                    (102, "H264/90000", "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=\(profile)"),
                    (103, "rtx/90000", "apt=102"),
                ])
        }
    }

    public var ufrag: String
    public var password = "0123456789abcdefghijklmn"
    public var version = 1
    public static let fingerprint = (0..<32).map { _ in "AB" }.joined(separator: ":")

    /// A client whose ICE user name fragment is `ufrag`.
    public init(ufrag: String = "clnt") { self.ufrag = ufrag }

    /// An offer of `sections`.
    public func offer(_ sections: [Section], setup: String = "actpass") -> String {
        var lines = header(sections.map(\.mid))
        for section in sections {
            let types = section.codecs.map { String($0.payloadType) }.joined(separator: " ")
            lines += ["m=\(section.kind) 9 UDP/TLS/RTP/SAVPF \(types)", "c=IN IP4 0.0.0.0"] + transport(setup)
            lines += ["a=mid:\(section.mid)", "a=\(section.direction)", "a=rtcp-mux", "a=rtcp-rsize"]
            lines += [
                "a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01",
                "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid",
            ]
            if section.kind == "video" {
                lines += [
                    "a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id",
                    "a=extmap:11 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id",
                    "a=extmap:13 urn:3gpp:video-orientation",
                ]
            }
            if let track = section.track, section.direction.hasPrefix("send") { lines.append("a=msid:stream \(track)") }
            for codec in section.codecs {
                lines.append("a=rtpmap:\(codec.payloadType) \(codec.map)")
                if let fmtp = codec.fmtp { lines.append("a=fmtp:\(codec.payloadType) \(fmtp)") }
                if section.kind == "video", !codec.map.hasPrefix("rtx") {
                    lines += ["nack", "nack pli", "ccm fir", "transport-cc"].map {
                        "a=rtcp-fb:\(codec.payloadType) \($0)"
                    }
                }
            }
            if !section.rids.isEmpty {
                lines += section.rids.map { "a=rid:\($0) send" }
                lines.append("a=simulcast:send \(section.rids.joined(separator: ";"))")
            }
            lines += section.extra
        }
        return lines.joined(separator: "\r\n") + "\r\n"
    }

    /// An offer of data channels only; `size` is its line for the longest message.
    public func dataOffer(size: String = "a=max-message-size:262144") -> String {
        var lines = header(["0"])
        lines += ["m=application 9 UDP/DTLS/SCTP webrtc-datachannel", "c=IN IP4 0.0.0.0"] + transport("actpass")
        lines += ["a=mid:0", "a=sctp-port:5000", size]
        return lines.joined(separator: "\r\n") + "\r\n"
    }

    /// The answer of a client that accepts everything a server offers, except the codecs in `without`.
    public func answer(to offer: String, without refused: Set<String> = []) -> String {
        let parts = offer.split(separator: "\r\nm=")
        let sections = parts.dropFirst().map { ("m=" + $0).split(separator: "\r\n").map(String.init) }
        var lines = header(sections.compactMap { Self.value("a=mid:", in: $0) })
        for section in sections { lines += answer(toSection: section, without: refused) }
        return lines.joined(separator: "\r\n") + "\r\n"
    }

    private func answer(toSection section: [String], without refused: Set<String>) -> [String] {
        var dropped = Set<String>()
        for line in section where line.hasPrefix("a=rtpmap:") {
            let words = line.dropFirst("a=rtpmap:".count).split(separator: " ")
            if refused.contains(String(words[1].prefix { $0 != "/" })) { dropped.insert(String(words[0])) }
        }
        for line in section where line.hasPrefix("a=fmtp:") {
            let words = line.dropFirst("a=fmtp:".count).split(separator: " ")
            if let apt = words.last, apt.hasPrefix("apt="), dropped.contains(String(apt.dropFirst(4))) {
                dropped.insert(String(words[0]))
            }
        }
        let words = section[0].split(separator: " ").map(String.init)
        let kept = words.dropFirst(3).filter { !dropped.contains($0) }
        let isDead = words[1] == "0" || kept.isEmpty
        var lines = [
            "\(words[0]) \(isDead ? "0" : "9") \(words[2]) \((isDead ? Array(words.dropFirst(3)) : Array(kept)).joined(separator: " "))",
            "c=IN IP4 0.0.0.0",
        ]
        lines += transport("active")
        for line in section.dropFirst() {
            switch line {
            case "a=sendonly": lines.append("a=recvonly")
            case "a=recvonly": lines.append("a=sendonly")
            case "a=inactive", "a=sendrecv", "a=rtcp-mux", "a=rtcp-rsize": lines.append(line)
            case _ where line.hasPrefix("a=mid:") || line.hasPrefix("a=extmap:"): lines.append(line)
            case _ where line.hasPrefix("a=sctp-port:"): lines += [line, "a=max-message-size:262144"]
            case _ where line.hasPrefix("a=rtpmap:") || line.hasPrefix("a=fmtp:") || line.hasPrefix("a=rtcp-fb:"):
                let type = line.drop { $0 != ":" }.dropFirst().prefix { $0 != " " }
                if !dropped.contains(String(type)) { lines.append(line) }
            default: continue
            }
        }
        return lines
    }

    private func header(_ mids: [String]) -> [String] {
        [
            "v=0", "o=- 4611731400430051336 \(version) IN IP4 127.0.0.1", "s=-", "t=0 0",
            "a=group:BUNDLE \(mids.joined(separator: " "))", "a=extmap-allow-mixed", "a=msid-semantic: WMS",
        ]
    }

    private func transport(_ setup: String) -> [String] {
        [
            "a=ice-ufrag:\(ufrag)", "a=ice-pwd:\(password)", "a=ice-options:trickle",
            "a=fingerprint:sha-256 \(Self.fingerprint)", "a=setup:\(setup)",
        ]
    }

    private static func value(_ prefix: String, in lines: [String]) -> String? {
        lines.first { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
    }
}
