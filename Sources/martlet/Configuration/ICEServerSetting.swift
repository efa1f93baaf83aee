import EdgeSupport
import NetworkIO
import Primitives

/// `ice_servers`: addresses, or objects with the members of an `RTCIceServer` (W3C WebRTC section 4.2.4), a secret instead of credentials, and the clients to
/// which they are announced.
///
/// Everything is checked here, because a browser that is given a server it cannot use refuses to create the connection.
extension ICEServers.Entry {
    static let form = "stun:HOST, or an object with urls and, for turn:HOST, a secret or username and credential"
    private static let members = ["urls", "username", "credential", "secret", "keys", "rooms", "origins"]
    /// A shorter secret could be guessed from one credential.
    private static let leastSecretBytes = 16

    /// One element of the setting.
    init(_ node: YAMLDocument.Node) throws(SettingError) {
        switch node.content {
        case .map(let members): self = try Self.object(members, line: node.line)
        default: self.init(ICEServer(urls: [try node.text(Self.form)]))
        }
        let urls = server.urls
        if let secret {
            guard server.username == nil, server.credential == nil else {
                throw SettingError(
                    problem: "an ICE server with a 'secret' has no 'username' and 'credential': they are made from it",
                    line: node.line)
            }
            guard secret.utf8.count >= Self.leastSecretBytes else {
                throw SettingError(
                    problem: "the 'secret' must have \(Self.leastSecretBytes) bytes or more; try: openssl rand -hex 32",
                    line: node.line)
            }
        }
        guard !urls.isEmpty else { throw SettingError(problem: "an ICE server needs 'urls'", line: node.line) }
        for url in urls {
            if let problem = Self.problem(of: url) {
                throw SettingError(problem: "'\(url)' \(problem)", line: node.line)
            }
            let isGiven = !(server.username ?? "").isEmpty && !(server.credential ?? "").isEmpty
            guard Self.isRelay(url), !isGiven, secret == nil else { continue }
            throw SettingError(
                problem: "'\(url)' needs 'username' and 'credential', without which browsers refuse to connect; "
                    + "write {urls: \"\(url)\", username: NAME, credential: SECRET}, or a 'secret' that the server shares",
                line: node.line)
        }
    }

    private static func object(_ members: [YAMLDocument.Member], line: Int) throws(SettingError) -> Self {
        var entry = Self(ICEServer(urls: []))
        func texts(_ value: YAMLDocument.Node, _ what: String) throws(SettingError) -> [String] {
            try value.elements.map { (element) throws(SettingError) in try element.text(what) }
        }
        for member in members {
            switch member.name {
            case "urls": entry.server.urls = try texts(member.value, "stun: or turn: URLs")
            case "username": entry.server.username = try member.value.text("text")
            case "credential": entry.server.credential = try member.value.text("text")
            case "secret": entry.secret = try member.value.text("text")
            case "keys": entry.keys = try texts(member.value, "names of API keys")
            case "rooms": entry.rooms = try texts(member.value, "names of rooms; a trailing * matches a prefix")
            case "origins": entry.origins = try texts(member.value, "web origins")
            default:
                let hint = Spelling.hint(
                    for: member.name, among: Self.members,
                    otherwise: "; it may have \(Self.members.joined(separator: ", "))")
                throw SettingError(problem: "an ICE server has no '\(member.name)'\(hint)", line: member.line)
            }
        }
        return entry
    }

    private static func isRelay(_ url: String) -> Bool {
        ["turn:", "turns:"].contains { url.lowercased().hasPrefix($0) }
    }

    /// What is wrong with an address according to RFC 7064 and RFC 7065, as browsers check it; nil if nothing is.
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

    /// Letters, digits, hyphens, dots, and the underscore, which host names contain in practice.
    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
