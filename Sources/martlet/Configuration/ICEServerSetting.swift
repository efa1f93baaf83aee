import EdgeSupport
import NetworkIO
import Primitives

/// `ice_servers`: addresses, or objects with what an `RTCIceServer` has (W3C WebRTC section 4.2.4).
///
/// All of it is checked here, because a browser that is told a server it cannot use throws away the whole connection.
extension ICEServer {
    static let form = "stun:HOST, or an object with urls, username and credential for turn:HOST"

    /// One element of the setting.
    init(_ node: YAMLDocument.Node) throws(SettingError) {
        switch node.content {
        case .map(let members): self = try Self.object(members, line: node.line)
        default: self.init(urls: [try node.text(Self.form)])
        }
        guard !urls.isEmpty else { throw SettingError(problem: "an ICE server needs 'urls'", line: node.line) }
        for url in urls {
            if let problem = Self.problem(of: url) {
                throw SettingError(problem: "'\(url)' \(problem)", line: node.line)
            }
            guard Self.isRelay(url), (username ?? "").isEmpty || (credential ?? "").isEmpty else { continue }
            throw SettingError(
                problem: "'\(url)' needs 'username' and 'credential', without which browsers refuse to connect; "
                    + "write {urls: \"\(url)\", username: NAME, credential: SECRET}", line: node.line)
        }
    }

    private static func object(_ members: [YAMLDocument.Member], line: Int) throws(SettingError) -> ICEServer {
        var server = ICEServer(urls: [])
        for member in members {
            switch member.name {
            case "urls":
                server.urls = try member.value.elements.map { (url) throws(SettingError) in
                    try url.text("stun: or turn: URLs")
                }
            case "username": server.username = try member.value.text("text")
            case "credential": server.credential = try member.value.text("text")
            default:
                let hint = Spelling.hint(
                    for: member.name, among: ["urls", "username", "credential"],
                    otherwise: "; it may have urls, username and credential")
                throw SettingError(problem: "an ICE server has no '\(member.name)'\(hint)", line: member.line)
            }
        }
        return server
    }

    private static func isRelay(_ url: String) -> Bool {
        ["turn:", "turns:"].contains { url.lowercased().hasPrefix($0) }
    }

    /// What is wrong with an address by RFC 7064 and RFC 7065, as browsers check it; nil when nothing is.
    private static func problem(of url: String) -> String? {
        let schemes = ["stun:", "stuns:", "turn:", "turns:"]
        guard let scheme = schemes.first(where: { url.lowercased().hasPrefix($0) }) else {
            return "is not the URL of an ICE server, which begins with stun:, stuns:, turn: or turns:"
        }
        var rest = url.dropFirst(scheme.count)
        if rest.hasPrefix("//") { return "must not have slashes; write \(scheme)\(rest.drop { $0 == "/" })" }
        if let mark = rest.firstIndex(of: "?") {
            let query = rest[rest.index(after: mark)...]
            rest = rest[..<mark]
            guard isRelay(url) else { return "has a query, which only turn: and turns: may have" }
            guard ["transport=udp", "transport=tcp"].contains(query) else {
                return "has a query other than ?transport=udp and ?transport=tcp"
            }
        }
        return isHostAndPort(rest)
            ? nil : "has no valid host or port; expected \(scheme)HOST or \(scheme)HOST:PORT"
    }

    private static func isHostAndPort(_ text: Substring) -> Bool {
        var port: Substring = ""
        var host = text
        // An IPv6 address has its colons in brackets.
        if let colon = text.lastIndex(of: ":"), text.last != "]" {
            host = text[..<colon]
            port = text[text.index(after: colon)...]
            guard let number = UInt16(port), number > 0 else { return false }
        }
        if host.hasPrefix("["), host.hasSuffix("]") {
            return SocketAddress(numeric: String(host.dropFirst().dropLast())).map { !$0.isIPv4 } ?? false
        }
        return !host.isEmpty && host.utf8.allSatisfy { isHostByte($0) }
    }

    /// Letters, digits, hyphens, dots, and the underscore that names of machines have in practice.
    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
