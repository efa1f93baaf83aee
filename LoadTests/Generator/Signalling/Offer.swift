import MediaControl
import Primitives
import SDP

/// What one peer connection is to carry, before negotiation.
struct OfferedMedia: Sendable {
    var sendsAudio = false
    /// Number of video layers sent; 0: no video, more than one: simulcast.
    var videoLayers = 0
    var receivesAudio = false
    var receivesVideo = false

    static let rids = ["q", "h", "f"]
}

/// The generator's side of a description: its ICE credentials, its certificate and the streams it sends.
struct LocalSide: Sendable {
    var ice: ICECredentials
    /// SHA-256 of the certificate.
    var fingerprint: [UInt8]
    var place: PeerPlace
    var sends: [SendPlan] = []
    var sdp = ""

    /// Its transport as lines of a section.
    var transportLines: [String] {
        var lines = [
            "a=ice-ufrag:\(ice.ufrag)", "a=ice-pwd:\(ice.password)", "a=ice-options:trickle",
            "a=fingerprint:\(Fingerprint.text(sha256: fingerprint))",
        ]
        if let address = place.address {
            lines += ["a=candidate:1 1 udp 2130706431 \(address.host) \(address.port) typ host", "a=end-of-candidates"]
        }
        return lines
    }
}

/// Which peer of its media thread a connection is, and the address from which it sends, if that is known in advance.
struct PeerPlace: Sendable, Hashable {
    var index: Int
    var address: SocketAddress?
}

/// The payload types and extension numbers that the generator offers, as Chromium does.
enum Offered {
    static let opus: UInt8 = 111
    static let audioExtensions: [(UInt8, String)] = [
        (1, ExtensionURI.audioLevel), (3, ExtensionURI.transportSequence), (4, ExtensionURI.mid),
    ]
    static let videoExtensions: [(UInt8, String)] = [
        (3, ExtensionURI.transportSequence), (4, ExtensionURI.mid), (10, ExtensionURI.rid),
        (11, ExtensionURI.repairedRID),
    ]

    static func credentials() -> ICECredentials {
        ICECredentials(ufrag: word(8), password: word(24))
    }

    static func ssrc() -> UInt32 { UInt32.random(in: 1...0x7fff_ffff) }

    private static func word(_ length: Int) -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
        return String((0..<length).compactMap { _ in letters.randomElement() })
    }
}

/// Writes an offer of this media.
func makeOffer(_ offered: OfferedMedia, _ codec: VideoCodec, from side: LocalSide, name: String) -> LocalSide {
    var local = side
    var sections: [String] = []
    func head(_ kind: String, _ formats: String, _ sends: Bool, _ receives: Bool) -> [String] {
        let mid = String(sections.count)
        return [
            "m=\(kind) 9 UDP/TLS/RTP/SAVPF \(formats)", "c=IN IP4 0.0.0.0", "a=rtcp:9 IN IP4 0.0.0.0",
        ] + local.transportLines + [
            "a=setup:actpass", "a=mid:\(mid)",
            "a=\(Direction(sends: sends, receives: receives).rawValue)", "a=rtcp-mux",
        ]
    }
    if offered.sendsAudio || offered.receivesAudio {
        var lines = head("audio", "\(Offered.opus)", offered.sendsAudio, offered.receivesAudio)
        lines += Offered.audioExtensions.map { "a=extmap:\($0.0) \($0.1)" }
        lines += [
            "a=rtpmap:111 opus/48000/2", "a=rtcp-fb:111 transport-cc", "a=fmtp:111 minptime=10;useinbandfec=1",
        ]
        if offered.sendsAudio {
            let plan = SendPlan(
                kind: .audio, mid: String(sections.count), payloadType: Offered.opus, ssrc: Offered.ssrc(),
                rtxSSRC: Offered.ssrc(), layer: 0)
            local.sends.append(plan)
            lines += ["a=msid:\(name) \(name)-audio", "a=ssrc:\(plan.ssrc) cname:\(name)"]
        }
        sections.append(lines.joined(separator: "\r\n"))
    }
    if offered.videoLayers > 0 || offered.receivesVideo {
        let (media, repeats) = codec.payloadTypes
        var lines = head("video", "\(media) \(repeats)", offered.videoLayers > 0, offered.receivesVideo)
        lines += Offered.videoExtensions.map { "a=extmap:\($0.0) \($0.1)" }
        lines += ["a=rtcp-rsize"] + codec.mediaLines
        lines += ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli"].map { "a=rtcp-fb:\(media) \($0)" }
        lines += ["a=rtpmap:\(repeats) rtx/90000", "a=fmtp:\(repeats) apt=\(media)"]
        if offered.videoLayers > 0 {
            lines += sendVideo(offered.videoLayers, codec, mid: String(sections.count), name, &local)
        }
        sections.append(lines.joined(separator: "\r\n"))
    }
    let mids = sections.indices.map(String.init).joined(separator: " ")
    let session = [
        "v=0", "o=- 4611686018427387904 2 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE \(mids)",
        "a=extmap-allow-mixed", "a=msid-semantic: WMS",
    ]
    local.sdp = (session + sections).joined(separator: "\r\n") + "\r\n"
    return local
}

private func sendVideo(
    _ layers: Int, _ codec: VideoCodec, mid: String, _ name: String, _ local: inout LocalSide
) -> [String] {
    var lines = ["a=msid:\(name) \(name)-video"]
    for layer in 0..<layers {
        local.sends.append(
            SendPlan(
                kind: .video, mid: mid, rid: layers > 1 ? OfferedMedia.rids[layer] : nil,
                payloadType: codec.payloadTypes.media, rtxPayloadType: codec.payloadTypes.repeats,
                ssrc: Offered.ssrc(), rtxSSRC: Offered.ssrc(), layer: layer))
    }
    if layers == 1, let plan = local.sends.last {
        lines += [
            "a=ssrc-group:FID \(plan.ssrc) \(plan.rtxSSRC)", "a=ssrc:\(plan.ssrc) cname:\(name)",
            "a=ssrc:\(plan.rtxSSRC) cname:\(name)",
        ]
    } else {
        let rids = OfferedMedia.rids.prefix(layers)
        lines += rids.map { "a=rid:\($0) send" } + ["a=simulcast:send \(rids.joined(separator: ";"))"]
    }
    return lines
}
