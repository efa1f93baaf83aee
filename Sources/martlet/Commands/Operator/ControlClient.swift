import AccessTokens
import EdgeSupport
import Glibc
import HTTPClient
import HTTPServing
import NetworkIO
import Primitives

/// Calls the control API of a running server for a command.
struct ControlClient {
    /// The response to a call: its body, and the entity tag for a later edit.
    struct Answer {
        var body: [UInt8]
        var tag: String?

        /// The body as a value.
        var value: JSONValue { (try? JSONCoding.decode(JSONValue.self, from: body)) ?? .null }
    }

    private let server: String
    /// The address of WHIP: the control API may be on the private listener only.
    private let publicServer: String
    private let token: String
    /// The key that signs further tokens; nil: the token was given.
    private let key: APIKey?
    private let certificatesPath: String?
    /// The server is on this machine, under an address that its certificate does not name: the certificates in the configuration's file are trusted instead.
    private let isPinned: Bool

    /// The options that every command for operators has.
    static let options = [
        CommandSyntax.Option(
            name: "--server", value: "URL",
            help: "the server; default: the port of the configuration on this machine"),
        CommandSyntax.Option(
            name: "--config", value: "FILE",
            help: "the server's configuration file: the key that signs the token, and its port"),
        CommandSyntax.Option(name: "--dev", value: nil, help: "the key of 'martlet serve --dev'"),
        CommandSyntax.Option(
            name: "--token", value: "TOKEN",
            help: "a token to use instead of a minted one; '-' reads it from standard input"),
        CommandSyntax.Option(name: "--ca", value: "FILE", help: "certificates to trust instead of the system's, PEM"),
        CommandSyntax.Option(name: "--json", value: nil, help: "print the server's answer as JSON, for scripts"),
    ]

    /// A token is for one command.
    private static let tokenSeconds: Int64 = 300

    init(_ given: CommandArguments) throws(CommandError) {
        let configuration =
            given["--token"] != nil && given["--server"] != nil
            ? nil
            : try Martlet.load(
                given["--config"], development: given.has("--dev"), on: nil, needsKey: given["--token"] == nil)
        if let address = given["--server"] {
            guard address.hasPrefix("http://") || address.hasPrefix("https://") else {
                throw CommandError(
                    message: "martlet: '\(address)' is not a server's address: that begins with http:// or https://",
                    exitCode: 2)
            }
            server = String(address.hasSuffix("/") ? address.dropLast() : address[...])
            publicServer = server
            certificatesPath = given["--ca"]
            isPinned = false
        } else {
            let fallback = "http://127.0.0.1:7880"
            server = configuration?.address(ofPrivateListener: configuration?.apiListener == .privateOne) ?? fallback
            publicServer = configuration?.address(ofPrivateListener: false) ?? fallback
            let own = configuration?.tlsCertificatePath
            certificatesPath = given["--ca"] ?? own
            isPinned = given["--ca"] == nil && own != nil
        }
        if let token = given["--token"] {
            key = nil
            self.token = token == "-" ? (readLine(strippingNewline: true) ?? "") : token
        } else {
            guard let key = configuration?.apiKeys.first else {
                throw CommandError(
                    message: "martlet: there is no API key to sign a token with; give --config, --dev or --token",
                    exitCode: 1)
            }
            self.key = key
            token = try Self.mint(key)
        }
    }

    private static func mint(_ key: APIKey) throws(CommandError) -> String {
        var grant = VideoGrant()
        grant.roomAdmin = true
        grant.roomList = true
        grant.roomCreate = true
        // For pre-call checks.
        grant.roomJoin = true
        let now = MonotonicClock.wallMilliseconds() / 1_000
        let claims = AccessClaims(
            apiKey: key.name, identity: nil, name: nil, metadata: nil, expiresAt: now + tokenSeconds, issuedAt: now,
            video: grant)
        do {
            return try TokenVerifier(keys: [key]).mint(claims)
        } catch {
            throw CommandError(message: "martlet: cannot create the token: \(error)", exitCode: 1)
        }
    }

    /// A path of these parts, which may hold any characters.
    static func path(_ parts: String...) -> String {
        parts.map { "/" + PercentCoding.encode($0) }.joined()
    }

    /// The query with these members; absent values are omitted.
    static func query(_ members: KeyValuePairs<String, String?>) -> String {
        let pairs = members.compactMap { name, value in value.map { "\(name)=\(path($0).dropFirst())" } }
        return pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&")
    }

    /// Calls the API; refusals become errors with the server's text.
    func call(
        _ method: String, _ path: String, _ body: [UInt8]? = nil, type: String = "application/json",
        ifMatch tag: String? = nil
    ) throws(CommandError) -> Answer {
        var call = request(method, path)
        call.body = body
        if let tag { call.headers.append("If-Match: \(tag)") }
        call.headers.append("Accept: application/json")
        if body != nil { call.headers.append("Content-Type: \(type)") }
        var found: String?
        switch call.perform(onHeader: { if $0.lowercased() == "etag" { found = $1 } }) {
        case .answered(200..<300, let body): return Answer(body: body, tag: found)
        case .answered(let status, let body): throw refused(status, body)
        case .failed(let words), .nobodyListens(let words): throw unreachable(words)
        case .addressRefused: throw unreachable("its address is not allowed")
        }
    }

    /// All pages of a list in one; `name` is the member with the elements. A filter in the query applies.
    func all(
        _ path: String, _ name: String, only filter: (name: String, value: String?) = ("", nil)
    ) throws(CommandError) -> Answer {
        var elements: [JSONValue] = []
        var after: String?
        repeat {
            let page = try call("GET", path + Self.query([filter.name: filter.value, "after": after])).value
            elements += page[name].elements
            if case .text(let next) = page["next"] { after = next } else { after = nil }
        } while after != nil
        return Answer(body: JSONCoding.encode([name: elements]))
    }

    /// Follows an event stream, and passes on each event's data. The server ends a stream when its token expires, or when its reader is too slow: after a
    /// `pause`, another request with another token gets the events after the last one. Returns when the server no longer listens. `remark` gets messages for
    /// the user that are not events.
    func follow(
        _ path: String, pause: TimeSpan = .seconds(2), remark: @escaping (String) -> Void = { _ in },
        _ event: @escaping (String) -> Void
    ) throws(CommandError) {
        var lines = EventLines()
        var (token, isAgain, hasFailed) = (token, false, false)
        while true {
            let begun = MonotonicClock.now()
            var call = request("GET", server + "/v1" + path, token)
            call.headers.append("Accept: text/event-stream")
            if let id = lines.lastID { call.headers.append("Last-Event-ID: \(id)") }
            call.timeout = nil
            lines.begin()
            let outcome = call.perform { status, bytes in
                // The head of a stream arrives at once, its first event perhaps after hours.
                if status == 200, !isAgain { remark("martlet: connected to \(server); waiting for events") }
                if status == 200 { (isAgain, hasFailed) = (true, false) }
                let found = lines.append(bytes, areEvents: status == 200)
                if lines.consumeMissed() { remark(Self.missed) }
                for data in found { event(data) }
                return true
            }
            switch outcome {
            case .answered(200, _): break
            case .answered(let status, _): throw refused(status, lines.rest)
            case .nobodyListens where isAgain: return
            // A server that shuts down may reset a connection that it has not read; the next attempt then finds no listener.
            case .failed where isAgain && !hasFailed: hasFailed = true
            case .failed(let words), .nobodyListens(let words): throw unreachable(words)
            case .addressRefused: throw unreachable("its address is not allowed")
            }
            isAgain = true
            // If the stream ended before it named an id, events during a pause would be lost.
            if lines.lastID != nil || hasFailed || MonotonicClock.now() - begun < pause {
                usleep(UInt32(clamping: pause.microseconds))
            }
            token = try renewedToken()
        }
    }

    /// A gap in the events that are shown.
    static let missed = "martlet: earlier events are no longer kept and not shown"

    /// The token for a further request of a command that runs longer than the first token is valid.
    private func renewedToken() throws(CommandError) -> String {
        guard let key else { return token }
        return try Self.mint(key)
    }

    /// Publishes into a room by WHIP, with a separate token; `end` ends the session.
    func publish(
        _ offer: String, room: String, token: String
    ) throws(CommandError) -> (answer: String, end: () -> Void) {
        var call = request("POST", publicServer + "/whip" + Self.path(room), token)
        call.headers.append("Content-Type: application/sdp")
        call.body = Array(offer.utf8)
        var location = ""
        let outcome = call.perform(onHeader: { name, value in if name.lowercased() == "location" { location = value } })
        switch outcome {
        case .answered(201, let body):
            let session = request("DELETE", publicServer + location, token)
            return (String(decoding: body, as: UTF8.self), { _ = session.perform() })
        case .answered(let status, let body): throw refused(status, body)
        case .failed(let words), .nobodyListens(let words): throw unreachable(words)
        case .addressRefused: throw unreachable("its address is not allowed")
        }
    }

    private func request(_ method: String, _ path: String) -> HTTPCall {
        request(method, server + "/v1" + path, token)
    }

    private func request(_ method: String, _ address: String, _ token: String) -> HTTPCall {
        var call = HTTPCall(method, address)
        call.headers = ["Authorization: Bearer \(token)"]
        call.certificatesPath = certificatesPath
        call.isPinned = isPinned
        return call
    }

    private func refused(_ status: Int, _ body: [UInt8]) -> CommandError {
        guard case .object(let problem)? = try? JSONCoding.decode(JSONValue.self, from: body),
            case .text(let detail)? = problem["detail"], case .text(let code)? = problem["code"]
        else {
            return CommandError(
                message: "martlet: the server at \(server) answered \(status), and not as Martlet does", exitCode: 1)
        }
        return CommandError(message: "martlet: \(detail) (\(code))", exitCode: 1)
    }

    private func unreachable(_ words: String) -> CommandError {
        CommandError(message: "martlet: the server at \(server) cannot be reached: \(words)", exitCode: 3)
    }
}

extension Configuration {
    /// The address at which this machine reaches one of the server's listeners.
    fileprivate func address(ofPrivateListener isPrivate: Bool) -> String {
        let listener = isPrivate ? privateListener : http
        let host =
            switch SocketAddress(numeric: listener.host) {
            // A listener on `::` serves IPv4, too, and only IPv4 on a machine without IPv6.
            case let address? where address.isUnspecified: "127.0.0.1"
            default: listener.host
            }
        let scheme = isPrivate || tlsCertificatePath == nil ? "http" : "https"
        return "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(listener.port)"
    }
}
