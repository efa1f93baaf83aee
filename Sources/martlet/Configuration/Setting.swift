import Logging
import MediaEngine
import MediaWorkers
import Primitives
import RoomService
import Rooms

/// One thing that can be configured: its path in the file, what it means, and how its text is taken.
///
/// The table below is all there is: the file, the environment, `check-config` and the README follow from it.
struct Setting: Sendable {
    /// "http.port"; in the environment MARTLET_HTTP_PORT.
    let path: String
    let summary: String
    let take: @Sendable (inout Configuration, [String]) throws(SettingError) -> Void

    /// The environment variable that overrides it.
    var variable: String {
        "MARTLET_" + path.uppercased().map { $0 == "." ? "_" : String($0) }.joined()
    }

    static let all: [Setting] = [
        .text("http.bind", "address of the public listener") { $0.http.host = $1 },
        .number("http.port", "port of the public listener", 0...65_535) { $0.http.port = UInt16($1) },
        .text("http.tls.certificate", "PEM file: certificate chain") { $0.tlsCertificatePath = $1 },
        .text("http.tls.key", "PEM file: private key") { $0.tlsKeyPath = $1 },
        Setting(path: "http.allowed_origins", summary: "web origins that may call; * for any") {
            (configuration, values) throws(SettingError) in configuration.allowedOrigins = values
        },
        .flag("trusted_proxy", "a proxy in front ends TLS; its X-Forwarded fields are believed") {
            $0.trustedProxy = $1
        },
        .flag("insecure", "serve other machines without TLS") { $0.insecure = $1 },
        .text("private.bind", "address of the listener for metrics and health") { $0.privateListener.host = $1 },
        .number("private.port", "port of the listener for metrics and health", 0...65_535) {
            $0.privateListener.port = UInt16($1)
        },
        .address("media.bind", "local address of the media ports; absent: all") { $0.media.bindAddress = $1 },
        .number("media.udp_port", "UDP port of the first worker; 0 lets the system choose", 0...65_535) {
            $0.media.udpBasePort = UInt16($1)
        },
        .number("media.workers", "media threads; 0: one a core", 0...256) { $0.media.workers = $1 },
        Setting(path: "media.announced_addresses", summary: "addresses in answers, for 1:1 NAT; absent: the machine's")
        {
            (configuration, values) throws(SettingError) in
            configuration.media.advertisedAddresses = try values.map { (text) throws(SettingError) in
                try SocketAddress(numeric: text)
            }
        },
        .flag("media.pin_threads", "bind each media thread to a core") { $0.media.pinsThreads = $1 },
        .seconds("media.consent_timeout", "seconds without a check until a peer is gone", 5...30) {
            $0.media.engine.consentTimeout = $1
        },
        .text("rooms.default", "room of a join that names none") { $0.rooms.defaultRoom = $1 },
        .flag("rooms.auto_create", "a join may make its room") { $0.rooms.autoCreateRooms = $1 },
        .number("rooms.max_rooms", "rooms at a time", 1...1_000_000) { $0.rooms.maxRooms = $1 },
        .number("rooms.max_participants", "participants of one room", 1...100_000) {
            $0.rooms.maxParticipantsPerRoom = $1
        },
        .number("rooms.joins_per_second", "joins a second over the whole server", 1...100_000) {
            $0.rooms.maxJoinsPerSecond = $1
        },
        .seconds("rooms.empty_timeout", "seconds until a room in which nobody ever was ends", 1...86_400) {
            $0.rooms.defaultPolicy.emptyTimeout = $1
        },
        .seconds("rooms.departure_timeout", "seconds until a room ends after the last one left", 0...86_400) {
            $0.rooms.defaultPolicy.departureTimeout = $1
        },
        Setting(path: "ice_servers", summary: "STUN and TURN addresses told to clients") {
            (configuration, values) throws(SettingError) in configuration.iceServerURLs = values
        },
        .word("log.level", "debug, info, warning or error", LogLevel.init(word:)) { $0.logLevel = $1 },
        .word("log.format", "text or json", LogFormat.init(rawValue:)) { $0.logFormat = $1 },
        .flag("log.addresses", "write client addresses in full") { $0.logShowsAddresses = $1 },
    ]
}

/// What is wrong with a value.
struct SettingError: Error, Hashable {
    var problem: String
}

extension Setting {
    private static func text(
        _ path: String, _ summary: String, set: @escaping @Sendable (inout Configuration, String) -> Void
    ) -> Setting {
        Setting(path: path, summary: summary) { (configuration, values) throws(SettingError) in
            set(&configuration, try single(values))
        }
    }

    private static func flag(
        _ path: String, _ summary: String, set: @escaping @Sendable (inout Configuration, Bool) -> Void
    ) -> Setting {
        word(path, summary + " (true or false)", { Bool($0) }, set: set)
    }

    private static func number(
        _ path: String, _ summary: String, _ range: ClosedRange<Int>,
        set: @escaping @Sendable (inout Configuration, Int) -> Void
    ) -> Setting {
        Setting(path: path, summary: summary) { (configuration, values) throws(SettingError) in
            guard let number = Int(try single(values)), range.contains(number) else {
                throw SettingError(problem: "wants a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
            set(&configuration, number)
        }
    }

    private static func seconds(
        _ path: String, _ summary: String, _ range: ClosedRange<Int>,
        set: @escaping @Sendable (inout Configuration, TimeInterval) -> Void
    ) -> Setting {
        number(path, summary, range) { set(&$0, .seconds(Int64($1))) }
    }

    private static func address(
        _ path: String, _ summary: String, set: @escaping @Sendable (inout Configuration, SocketAddress) -> Void
    ) -> Setting {
        Setting(path: path, summary: summary) { (configuration, values) throws(SettingError) in
            set(&configuration, try SocketAddress(numeric: try single(values)))
        }
    }

    private static func word<Value>(
        _ path: String, _ summary: String, _ parse: @escaping @Sendable (String) -> Value?,
        set: @escaping @Sendable (inout Configuration, Value) -> Void
    ) -> Setting {
        Setting(path: path, summary: summary) { (configuration, values) throws(SettingError) in
            let text = try single(values)
            guard let value = parse(text) else { throw SettingError(problem: "'\(text)' is not one of: \(summary)") }
            set(&configuration, value)
        }
    }

    private static func single(_ values: [String]) throws(SettingError) -> String {
        guard values.count == 1, !values[0].isEmpty else { throw SettingError(problem: "wants one value, not a list") }
        return values[0]
    }
}
