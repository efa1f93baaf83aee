import EdgeSupport
import MediaControl
import MediaEngine
import MediaWorkers
import NetworkIO
import Primitives
import RoomService
import Rooms

extension Setting {
    /// Every setting, in the order in which people look for them. If a section has a type of its own, its settings are next to that type.
    static let all: [Setting] =
        http + media + admission + rooms + sessions + storage + recording + jobs + playback + telemetry + log

    private static let http: [Setting] = [
        address(
            "http.bind", "address to listen on for HTTP and WebSocket; `::` for all IPv4 and IPv6 addresses",
            \.http.host),
        number("http.port", "TCP port of HTTP and WebSocket; 0 lets the system choose", 0...65_535, \.http.port),
        file("http.tls.certificate", "certificate chain, PEM", \.tlsCertificatePath),
        file("http.tls.key", "private key, PEM", \.tlsKeyPath),
        list(
            "http.allowed_origins", "allowed CORS origins", wants: WebOrigin.form, \.allowedOrigins,
            element: WebOrigin.element, show: { $0 }),
        number(
            "http.api_calls_per_second",
            "maximum calls of the control API per second with one API key; those of participants that moderate a room count apart",
            1...1_000_000, \.apiCallsPerSecond),
        word(
            "http.control_api", "listener that serves the control API, its event streams and LiveKit's server API",
            [("public", .publicOne), ("private", .privateOne)], \.apiListener),
        flag("trusted_proxy", "a reverse proxy terminates TLS; trust its `X-Forwarded-*` headers", \.trustedProxy),
        flag("insecure", "serve other machines without TLS and without a trusted proxy", \.insecure),
        address("private.bind", "address to listen on for metrics and health", \.privateListener.host),
        number(
            "private.port", "TCP port of metrics and health; 0 lets the system choose", 0...65_535,
            \.privateListener.port),
    ]

    private static let media: [Setting] = [
        value(
            "media.bind", "local address to bind the media ports to; unset: all addresses",
            wants: "an IPv4 or IPv6 address",
            \.media.bindAddress, parse: { SocketAddress(numeric: $0).map { .some($0) } }, show: { $0?.host ?? "" }),
        number(
            "media.udp_port",
            "UDP port of the first worker; each further worker takes the next port; 0 lets the system choose",
            0...65_535,
            \.media.udpBasePort),
        flag(
            "media.tcp",
            "accept media over TCP on the numbers of the UDP ports, for clients whose network blocks UDP (ICE-TCP)",
            \.media.acceptsTCP),
        port(
            "media.tcp_port",
            "one more TCP port for media of all clients, such as 443, for networks that permit no other; unset: none",
            \.media.sharedTCPPort),
        port(
            "media.announced_tcp_port",
            "the number of `media.tcp_port` to announce to clients, where a load balancer maps it; unset: the same",
            \.media.announcedTCPPort),
        number(
            "media.workers", "media threads; 0: one per core, of those that the CPU limit of a container permits",
            0...256, \.media.workers),
        list(
            "media.announced_addresses",
            "public addresses to advertise to clients, for a server behind NAT; a port given here belongs to the first worker, each further worker takes the next; `discover` asks `media.stun_server`; unset: the machine's own addresses",
            wants: "`discover`, or IPv4 or IPv6 addresses such as 192.0.2.7, 192.0.2.7:40000 or [2001:db8::7]:40000",
            \.announcedAddresses, parse: { AnnouncedAddress(text: $0) }, show: { $0.text }),
        value(
            "media.stun_server",
            "STUN server that is asked for the public addresses where `media.announced_addresses` has `discover`",
            wants: "HOST or HOST:PORT", \.stunServer,
            parse: { HostAndPort(text: $0, defaultPort: 3_478).map { .some($0) } },
            show: { $0.map { "\($0)" } ?? "" }),
        list(
            "media.interfaces",
            "interfaces whose addresses are advertised when `media.announced_addresses` is unset; unset: all interfaces",
            wants: "names; a trailing `*` matches a prefix", \.media.addressFilter.interfaces,
            parse: { $0.isEmpty ? nil : $0 }, show: { $0 }),
        list(
            "media.networks",
            "networks whose addresses are advertised when `media.announced_addresses` is unset; unset: all networks",
            wants: "networks such as 10.0.0.0/8 or 2001:db8::/32", \.media.addressFilter.networks,
            parse: { AddressPrefix(text: $0) }, show: { "\($0.address.host)/\($0.bits)" }),
        flag("media.pin_threads", "pin each media thread to a core", \.media.pinsThreads),
        flag(
            "media.level_sizes", "pad packets by a few bytes to equal lengths, which makes them cheaper to send",
            \.media.engine.levelsSizes),
        number(
            "media.gather_microseconds",
            "how long to wait for the rest of a frame, to send its packets together", 0...5_000,
            \.media.gatherMicroseconds, unit: "microseconds"),
        flag(
            "media.dscp",
            "mark media over UDP for networks that prefer it, audio as EF and video as AF41; nothing else is marked",
            \.media.marksMedia),
        seconds(
            "media.consent_timeout", "a peer that sends nothing for this long is disconnected", 5...30,
            \.media.engine.consentTimeout),
        list(
            "ice_servers", "STUN and TURN servers to announce to clients", wants: ICEServers.Entry.form, \.iceServers,
            element: ICEServers.Entry.init(_:), show: { $0.server.urls.joined(separator: ", ") }),
        seconds(
            "ice_credentials_lifetime", "how long credentials are valid that are made from a TURN server's `secret`",
            60...604_800, \.iceCredentialsLifetime),
    ]

    private static let rooms: [Setting] = [
        value(
            "rooms.default", "room for clients that name none", wants: "a room's name", \.rooms.defaultRoom,
            parse: { TextRule.identifier.fault(in: $0) == nil ? $0 : nil }, show: { $0 }),
        flag("rooms.auto_create", "create a room when its first participant joins", \.rooms.autoCreateRooms),
        number("rooms.max_rooms", "maximum rooms at once", 1...1_000_000, \.rooms.maxRooms),
        number(
            "rooms.max_participants", "maximum participants in one room", 1...100_000, \.rooms.maxParticipantsPerRoom),
        number(
            "rooms.max_participants_total", "maximum participants in all rooms together", 1...1_000_000,
            \.rooms.maxParticipants),
        number(
            "rooms.max_connections",
            "maximum peer connections in all rooms together, 300 kB of memory each; further joins are refused; 0: as many as fit three quarters of the machine's or container's memory",
            0...10_000_000, \.maxConnections),
        number(
            "rooms.joins_per_second", "maximum joins per second in all rooms together", 1...100_000,
            \.rooms.maxJoinsPerSecond
        ),
        flag(
            "rooms.allow_captures",
            "allow operators to capture a participant's decrypted packets; only clients on martlet.v1 are notified",
            \.rooms.allowsCaptures),
        number("rooms.max_checks", "maximum pre-call checks at once; 0: none", 0...1_000, \.rooms.maxChecks),
        number(
            "rooms.max_message_bytes", "longest message that a participant may send on a data channel",
            16_384...262_144,
            \.rooms.maxMessageBytes, unit: "bytes"),
        codecs(
            "rooms.audio_codecs", "audio codecs allowed in rooms, in order of preference; unset: any", .audio,
            \.rooms.defaultPolicy.audioCodecs),
        codecs(
            "rooms.video_codecs", "video codecs allowed in rooms, in order of preference; unset: any", .video,
            \.rooms.defaultPolicy.videoCodecs),
        optional(
            "rooms.max_video_subscriptions", "maximum videos sent to a participant at once; unset: no limit", 0...1_000,
            \.rooms.defaultPolicy.bandwidth.maxVideoSubscriptions),
        bitrate(
            "rooms.max_video_bitrate", "maximum bitrate of each video that a participant sends; unset: no limit",
            \.rooms.defaultPolicy.maxVideoBitrate),
        bitrate(
            "rooms.max_uplink_bitrate", "maximum bitrate of all video that a participant sends; unset: no limit",
            \.rooms.defaultPolicy.bandwidth.maxUplinkBitrate),
        bitrate(
            "rooms.max_downlink_bitrate", "maximum bitrate of all video sent to a participant; unset: no limit",
            \.rooms.defaultPolicy.bandwidth.maxDownlinkBitrate),
        seconds(
            "rooms.empty_timeout", "close a room that nobody has joined after", 1...86_400,
            \.rooms.defaultPolicy.emptyTimeout),
        seconds(
            "rooms.departure_timeout", "close a room this long after its last participant left", 0...86_400,
            \.rooms.defaultPolicy.departureTimeout),
        seconds(
            "rooms.closed_for",
            "after a room is deleted or a participant removed, refuse older tokens for this long; 0: accept them",
            0...86_400, \.rooms.closedFor),
    ]

    private static let sessions: [Setting] = [
        seconds(
            "sessions.keep_alive", "end a signalling session without keep-alive after", 3...3_600,
            \.rooms.keepAliveTimeout),
        seconds(
            "sessions.resume_window", "how long a dropped signalling connection can be resumed", 0...3_600,
            \.rooms.resumeWindow),
        seconds(
            "sessions.drain", "grace period for running calls after SIGTERM; no new rooms are created", 0...86_400,
            \.drainTimeout),
    ]

    private static let storage: [Setting] = [
        file(
            "storage.path",
            "database file for webhooks, the events that wait for them, past sessions, presets, bans and revocations; unset: they end with the process",
            \.databasePath),
        seconds(
            "storage.sessions_kept", "how long the summaries of past sessions are kept", 0...31_536_000,
            \.sessionsKept),
        flag(
            "webhooks.allow_private", "post events to receivers on this machine and in private networks, too",
            \.webhooksAllowPrivate),
        number(
            "events.kept", "events of all rooms that the event log keeps for readers", 1...1_000_000,
            \.rooms.maxKeptEvents),
    ]

    private static let playback: [Setting] = [
        folder(
            "playback.directory",
            "folder of files that may be played into rooms; unset: recordings only", \.playbackDirectory),
        number("playback.maximum", "maximum playbacks at once", 1...1_000, \.maximumPlaybacks),
    ]

    private static let telemetry: [Setting] = [
        value(
            "telemetry.otlp_endpoint",
            "OpenTelemetry collector to which traces of joins are sent (OTLP over HTTP, at /v1/traces); unset: none",
            wants: "an http or https URL such as http://127.0.0.1:4318", \.traceCollector,
            parse: { CollectorAddress.isGood($0) ? .some($0) : nil }, show: { $0 ?? "" })
    ]

    private static func address(_ path: String, _ summary: String, _ place: Place<String>) -> Setting {
        value(
            path, summary, wants: "an IPv4 or IPv6 address", place,
            parse: { SocketAddress(numeric: $0) == nil ? nil : $0 }, show: { $0 })
    }

    private static func optional(
        _ path: String, _ summary: String, _ range: ClosedRange<Int>, _ place: Place<Int?>
    ) -> Setting {
        value(
            path, summary, wants: "\(range.lowerBound) to \(range.upperBound)", place,
            parse: { Int($0).flatMap { range.contains($0) ? .some($0) : nil } }, show: { $0.map(String.init) ?? "" })
    }

    private static func port(_ path: String, _ summary: String, _ place: Place<UInt16?>) -> Setting {
        value(
            path, summary, wants: "1 to 65535", place,
            parse: { UInt16($0).flatMap { $0 > 0 ? .some($0) : nil } }, show: { $0.map { String($0) } ?? "" })
    }

    private static func bitrate(_ path: String, _ summary: String, _ place: Place<Bitrate?>) -> Setting {
        let range: ClosedRange<Int64> = 10_000...1_000_000_000
        return value(
            path, summary, wants: "bits per second, \(range.lowerBound) to \(range.upperBound)", place,
            parse: { Int64($0).flatMap { range.contains($0) ? .some(.bitsPerSecond($0)) : nil } },
            show: { $0.map { String($0.bitsPerSecond) } ?? "" })
    }

    private static func codecs(_ path: String, _ summary: String, _ kind: MediaKind, _ place: Place<[Codec]>) -> Setting
    {
        let words = Codec.allCases.filter { $0.kind == kind && $0 != .otherAudio }.map(\.word)
        return list(
            path, summary, wants: words.joined(separator: ", "), place,
            parse: { text in words.contains(text) ? Codec(word: text) : nil }, show: { $0.word })
    }
}
