import MediaControl
import Primitives
import SDP

/// The content of the server's description, offer or answer.
struct RemoteSide {
    var ice = ICECredentials(ufrag: "", password: "")
    var fingerprint: [UInt8] = []
    var destination: SocketAddress
    var setup = "actpass"
    var receives: [UInt8: ReceivedFormat] = [:]
    var extensions = ExtensionNumbers()
    let description: SessionDescription

    /// Reads a description; candidates that are not UDP over IPv4 are skipped.
    init(_ text: String) throws(LoadError) {
        do throws(NegotiationError) {
            description = try SessionDescription(parsing: text)
        } catch { throw .signalling("cannot parse the server's session description: \(error)") }
        let all = description.sections.reduce(description.attributes) { $0 + $1.attributes }
        guard let ufrag = all.first("ice-ufrag"), let password = all.first("ice-pwd") else {
            throw .signalling("the server's session description has no ICE credentials")
        }
        ice = ICECredentials(ufrag: ufrag, password: password)
        setup = all.first("setup") ?? "actpass"
        let prints = all.all("fingerprint").filter { $0.lowercased().hasPrefix("sha-256 ") }
        fingerprint = prints.first?.dropFirst(8).split(separator: ":").compactMap { UInt8($0, radix: 16) } ?? []
        guard fingerprint.count == 32 else {
            throw .signalling("the server's session description has no SHA-256 fingerprint")
        }
        let candidates = all.all("candidate").compactMap { Candidate(parsing: "candidate:" + $0) }
        let usable = candidates.filter { $0.transport == .udp && $0.component == 1 && ipv4($0.address) != nil }
        guard let best = usable.max(by: { $0.priority < $1.priority }), let address = ipv4(best.address) else {
            throw .signalling("the server's session description has no IPv4 UDP candidate")
        }
        destination = SocketAddress(ipv4: address, port: best.port)
        for section in description.sections where section.port != 0 || section.attributes.has("bundle-only") {
            read(section)
        }
    }

    /// The formats of a section that the generator accepts.
    func wanted(of section: DescriptionSection) -> [String] {
        section.formats.filter { word in
            guard section.port != 0 || section.attributes.has("bundle-only"), let payloadType = UInt8(word) else {
                return false
            }
            return receives[payloadType] != nil
        }
    }

    private mutating func read(_ section: DescriptionSection) {
        var names: [UInt8: String] = [:]
        for map in section.attributes.all("rtpmap") {
            let words = map.split(separator: " ")
            guard words.count > 1, let payloadType = UInt8(words[0]) else { continue }
            names[payloadType] = words[1].lowercased()
        }
        for (payloadType, name) in names {
            if name.hasPrefix("opus/") { receives[payloadType] = .opus }
            if name.hasPrefix("vp8/") { receives[payloadType] = .vp8 }
            if name.hasPrefix("h264/") { receives[payloadType] = .h264 }
        }
        for format in section.attributes.all("fmtp") {
            let words = format.split(separator: " ")
            guard words.count > 1, let payloadType = UInt8(words[0]), names[payloadType]?.hasPrefix("rtx/") == true,
                words[1].hasPrefix("apt="), let of = UInt8(words[1].dropFirst(4))
            else { continue }
            receives[payloadType] = .rtx(of: of)
        }
        for map in section.attributes.all("extmap") {
            let words = map.split(separator: " ")
            guard words.count > 1, let id = UInt8(words[0].split(separator: "/")[0]) else { continue }
            extensions.set(String(words[1]), to: id)
        }
    }
}

extension ExtensionNumbers {
    mutating func set(_ uri: String, to id: UInt8) {
        switch uri {
        case ExtensionURI.mid: mid = id
        case ExtensionURI.rid: rid = id
        case ExtensionURI.repairedRID: repairedRID = id
        case ExtensionURI.transportSequence: transportSequence = id
        case ExtensionURI.audioLevel: audioLevel = id
        case ExtensionURI.absoluteSendTime: absoluteSendTime = id
        default: break
        }
    }
}

/// An IPv4 address in its usual form as one word.
func ipv4(_ text: String) -> UInt32? {
    let parts = text.split(separator: ".").compactMap { UInt8($0) }
    guard parts.count == 4 else { return nil }
    return parts.reduce(0) { $0 << 8 | UInt32($1) }
}

/// Answers the server's offer: accepts everything that it sends as Opus, VP8 or H.264, and sends nothing.
func makeAnswer(to remote: RemoteSide, from local: LocalSide) -> String {
    var lines = ["v=0", "o=- 4611686018427387905 2 IN IP4 127.0.0.1", "s=-", "t=0 0"]
    let taken = remote.description.sections.filter { !remote.wanted(of: $0).isEmpty }
    if remote.description.attributes.first("group") != nil {
        lines.append("a=group:" + (["BUNDLE"] + taken.compactMap { $0.attributes.first("mid") }).joined(separator: " "))
    }
    for section in remote.description.sections {
        let attributes = section.attributes
        let wanted = remote.wanted(of: section)
        let isUsed = !wanted.isEmpty
        lines.append(
            "m=\(section.media) \(isUsed ? 9 : 0) \(section.proto) "
                + (isUsed ? wanted : section.formats).joined(separator: " "))
        lines += ["c=IN IP4 0.0.0.0"]
        if let mid = attributes.first("mid") { lines.append("a=mid:\(mid)") }
        guard isUsed else { continue }
        let sends = attributes.has("sendonly") || attributes.has("sendrecv")
        lines +=
            local.transportLines + [
                "a=setup:\(remote.setup == "active" ? "passive" : "active")", "a=rtcp-mux",
                sends ? "a=recvonly" : "a=inactive",
            ]
        lines += attributes.all("extmap").filter { map in
            Offered.videoExtensions.contains { map.hasSuffix(" " + $0.1) }
                || Offered.audioExtensions.contains { map.hasSuffix(" " + $0.1) }
        }.map { "a=extmap:\($0)" }
        for name in ["rtpmap", "fmtp", "rtcp-fb"] {
            lines += attributes.all(name).filter { value in
                wanted.contains { value.hasPrefix($0 + " ") }
            }.map { "a=\(name):\($0)" }
        }
    }
    return lines.joined(separator: "\r\n") + "\r\n"
}
