import EdgeSupport
import Logging
import MediaControl
import MediaEngine
import MediaWorkers
import NetworkIO
import Primitives
import RoomService
import Rooms

extension Setting {
    /// Every setting, in the order in which people look for them.
    static let all: [Setting] = http + media + rooms + sessions + log

    private static let http: [Setting] = [
        address("http.bind", "where HTTP and WebSocket are served; :: for all of both families", \.http.host),
        number("http.port", "port of HTTP and WebSocket; 0 lets the system choose", 0...65_535, \.http.port),
        file("http.tls.certificate", "certificate chain, PEM", \.tlsCertificatePath),
        file("http.tls.key", "private key, PEM", \.tlsKeyPath),
        list(
            "http.allowed_origins", "web pages that may call", wants: "https://host, or * for any", \.allowedOrigins,
            parse: { $0.isEmpty ? nil : $0 }, show: { $0 }),
        flag("trusted_proxy", "a proxy in front ends TLS; its X-Forwarded fields are believed", \.trustedProxy),
        flag("insecure", "serve other machines although there is neither TLS nor a proxy", \.insecure),
        address("private.bind", "where metrics and health are served", \.privateListener.host),
        number("private.port", "port of metrics and health", 0...65_535, \.privateListener.port),
    ]

    private static let media: [Setting] = [
        value(
            "media.bind", "local address of the media ports; none: all", wants: "an IPv4 or IPv6 address",
            \.media.bindAddress, parse: { SocketAddress(numeric: $0).map { .some($0) } }, show: { $0?.host ?? "" }),
        number(
            "media.udp_port", "UDP port of the first worker, the others follow; 0 lets the system choose", 0...65_535,
            \.media.udpBasePort),
        number("media.workers", "media threads; 0: one a core", 0...256, \.media.workers),
        list(
            "media.announced_addresses",
            "addresses in answers, for NAT; with a port where it is mapped: that of the first worker, the others' follow; none: those of the machine",
            wants: "IPv4 or IPv6 addresses, as 192.0.2.7, 192.0.2.7:40000, [2001:db8::7]:40000",
            \.media.advertisedAddresses, parse: { SocketAddress(numericWithPort: $0) }, show: { $0.textWithPort }),
        list(
            "media.interfaces", "network interfaces whose addresses are told, where none are announced; none: all",
            wants: "names, with * at the end for a beginning", \.media.addressFilter.interfaces,
            parse: { $0.isEmpty ? nil : $0 }, show: { $0 }),
        list(
            "media.networks", "networks whose addresses are told, where none are announced; none: all",
            wants: "networks as 10.0.0.0/8 or 2001:db8::/32", \.media.addressFilter.networks,
            parse: { AddressPrefix(text: $0) }, show: { "\($0.address.host)/\($0.bits)" }),
        flag("media.pin_threads", "bind each media thread to a core", \.media.pinsThreads),
        flag(
            "media.level_sizes", "pad packets by a few bytes to one length: sending costs less",
            \.media.engine.levelsSizes),
        number(
            "media.gather_microseconds",
            "how long a turn may wait for the rest of a picture, whose packets then leave together", 0...5_000,
            \.media.gatherMicroseconds),
        seconds(
            "media.consent_timeout", "a peer that is silent for so long is gone", 5...30, \.media.engine.consentTimeout),
        list(
            "ice_servers", "told to clients", wants: "stun:, turn: or turns: addresses", \.iceServerURLs,
            parse: { text in ["stun:", "turn:", "turns:"].contains { text.hasPrefix($0) } ? text : nil }, show: { $0 }),
    ]

    private static let rooms: [Setting] = [
        value(
            "rooms.default", "the room of a join that names none", wants: "text", \.rooms.defaultRoom,
            parse: { TextRule.identifier.fault(in: $0) == nil ? $0 : nil }, show: { $0 }),
        flag("rooms.auto_create", "a join may make its room", \.rooms.autoCreateRooms),
        number("rooms.max_rooms", "rooms at a time", 1...1_000_000, \.rooms.maxRooms),
        number(
            "rooms.max_participants", "participants of one room", 1...100_000, \.rooms.maxParticipantsPerRoom),
        number(
            "rooms.max_participants_total", "participants of all rooms", 1...1_000_000, \.rooms.maxParticipants),
        number(
            "rooms.max_connections",
            "peer connections of all rooms, 300 kB each; joins beyond are refused; 0: three quarters of the machine's or the container's memory",
            0...10_000_000, \.maxConnections),
        number("rooms.joins_per_second", "joins a second, over all rooms", 1...100_000, \.rooms.maxJoinsPerSecond),
        codecs(
            "rooms.audio_codecs", "audio codecs of rooms, best first; none: any", .audio,
            \.rooms.defaultPolicy.audioCodecs),
        codecs(
            "rooms.video_codecs", "video codecs of rooms, best first; none: any", .video,
            \.rooms.defaultPolicy.videoCodecs),
        optional(
            "rooms.max_video_subscriptions", "videos that a participant is sent at a time; none: any number", 0...1_000,
            \.rooms.defaultPolicy.bandwidth.maxVideoSubscriptions),
        bitrate(
            "rooms.max_video_bitrate", "cap of each video that a participant sends; none: no cap",
            \.rooms.defaultPolicy.maxVideoBitrate),
        bitrate(
            "rooms.max_uplink_bitrate", "cap of all video that a participant sends; none: no cap",
            \.rooms.defaultPolicy.bandwidth.maxUplinkBitrate),
        bitrate(
            "rooms.max_downlink_bitrate", "cap of all video that a participant is sent; none: no cap",
            \.rooms.defaultPolicy.bandwidth.maxDownlinkBitrate),
        seconds(
            "rooms.empty_timeout", "a room in which nobody ever was ends after", 1...86_400,
            \.rooms.defaultPolicy.emptyTimeout),
        seconds(
            "rooms.departure_timeout", "a room ends so long after the last one left", 0...86_400,
            \.rooms.defaultPolicy.departureTimeout),
        seconds(
            "rooms.closed_for",
            "after a room is deleted or a participant removed, refuse tokens issued before that for this long; 0: accept them",
            0...86_400, \.rooms.closedFor),
    ]

    private static let sessions: [Setting] = [
        seconds(
            "sessions.keep_alive", "a signalling session without a sign of life ends after", 3...3_600,
            \.rooms.keepAliveTimeout),
        seconds(
            "sessions.resume_window", "a dropped socket may be resumed for so long", 0...3_600, \.rooms.resumeWindow),
        seconds(
            "sessions.drain", "calls may go on for so long after SIGTERM; nobody new is taken", 0...86_400,
            \.drainTimeout),
    ]

    private static let log: [Setting] = [
        word(
            "log.level", "what is logged",
            [("debug", .debug), ("info", .info), ("warning", .warning), ("error", .error)],
            \.logLevel),
        word("log.format", "how it is written", [("text", .text), ("json", .json)], \.logFormat),
        flag("log.addresses", "client addresses are logged in full", \.logShowsAddresses),
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

    private static func bitrate(_ path: String, _ summary: String, _ place: Place<Bitrate?>) -> Setting {
        let range: ClosedRange<Int64> = 10_000...1_000_000_000
        return value(
            path, summary, wants: "bits a second, \(range.lowerBound) to \(range.upperBound)", place,
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
