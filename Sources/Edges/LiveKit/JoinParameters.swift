import CLiveKitProtocol
import EdgeSupport
import Foundation
import HTTPServing
import Rooms

/// What a client sends besides its token when it opens the signalling socket.
struct JoinParameters: Sendable, Hashable {
    /// Which of the two ways of signalling.
    enum Generation: Sendable, Hashable {
        /// `/rtc`: two peer connections; the server offers on the one for receiving.
        case dual
        /// `/rtc/v1`: one peer connection, on which only the client offers.
        case single
    }

    var generation: Generation
    /// The client's protocol number; above the newest known one is normal.
    var protocolVersion = 0
    var autoSubscribe = true
    /// The same for data tracks, but only if the client requests it: others drop frames of tracks that they have not subscribed to by name (measured: Python
    /// SDK 1.2.1).
    var subscribesToDataTracks = false
    /// Video for which there is no bandwidth may be held, unless the client forbids it.
    var mayHoldVideo = true
    /// The participant whose stay is resumed on this socket.
    var resumes: String?
    var client = ClientTraits()
    var metadata: String?
    var attributes: [String: String] = [:]
    /// The first offer of the only connection.
    var offer: ClientSignal.Description?
    var tracks: [TrackRequest] = []

    /// From the query of `/rtc`; unknown parameters are skipped, as clients of other versions send them.
    init(dual query: [String: String]) {
        generation = .dual
        protocolVersion = query["protocol"].flatMap { Int($0) } ?? 0
        autoSubscribe = Self.flag(query["auto_subscribe"]) ?? true
        subscribesToDataTracks = Self.flag(query["auto_subscribe_data_track"]) ?? false
        mayHoldVideo = Self.flag(query["subscriber_allow_pause"]) ?? true
        client.peerProtocol = query["client_protocol"].flatMap { Int($0) } ?? 0
        client.capabilities = (query["capabilities"] ?? "").split(separator: ",").prefix(Self.maximumCapabilities)
            .compactMap { Self.capabilities[String($0)] }
        if Self.flag(query["reconnect"]) == true { resumes = query["sid"] ?? "" }
        if let text = query["attributes"], let bytes = Self.base64(text),
            let attributes = try? JSONDecoder().decode([String: String].self, from: Data(bytes))
        {
            self.attributes = attributes
        }
    }

    /// From `join_request` of `/rtc/v1`; nil where that is none.
    init?(single text: String?) {
        guard let text, let wrapped = Self.base64(text),
            let wrapper = UnpackedMessage<Livekit__WrappedJoinRequest>(wrapped, livekit__wrapped_join_request__unpack)
        else { return nil }
        let (bytes, isCompressed) = wrapper.read {
            ([UInt8]($0.join_request), $0.compression == LIVEKIT__WRAPPED_JOIN_REQUEST__COMPRESSION__GZIP)
        }
        guard let plain = isCompressed ? Gzip.inflate(bytes, atMost: Self.maximumJoinBytes) : bytes,
            plain.count <= Self.maximumJoinBytes,
            let request = UnpackedMessage<Livekit__JoinRequest>(plain, livekit__join_request__unpack)
        else { return nil }
        self = request.read { Self(single: $0) }
    }

    /// An offer has at most 512 KiB, and everything else far less.
    private static let maximumJoinBytes = 1 << 20

    /// More than are defined.
    private static let maximumCapabilities = 32
    /// Names of `ClientInfo.Capability`, as queries have them.
    private static let capabilities = ["CAP_PACKET_TRAILER": 1, "CAP_COMPRESSION_DEFLATE_RAW": 2]

    /// As many as may be announced before their offer.
    private static let maximumTracks = 64

    private init(single request: Livekit__JoinRequest) {
        generation = .single
        if let info = request.client_info?.pointee {
            protocolVersion = Int(info.protocol)
            client.peerProtocol = Int(info.client_protocol)
            client.capabilities = (0..<min(info.n_capabilities, Self.maximumCapabilities)).map {
                Int(info.capabilities[$0].rawValue)
            }
        }
        if let settings = request.connection_settings?.pointee {
            autoSubscribe = settings.auto_subscribe != 0
            subscribesToDataTracks =
                settings.optional_auto_subscribe_data_track_case
                == LIVEKIT__CONNECTION_SETTINGS__OPTIONAL_AUTO_SUBSCRIBE_DATA_TRACK_AUTO_SUBSCRIBE_DATA_TRACK
                && settings.auto_subscribe_data_track != 0
            mayHoldVideo =
                settings.optional_subscriber_allow_pause_case
                != LIVEKIT__CONNECTION_SETTINGS__OPTIONAL_SUBSCRIBER_ALLOW_PAUSE_SUBSCRIBER_ALLOW_PAUSE
                || settings.subscriber_allow_pause != 0
        }
        let metadata = String(request.metadata)
        self.metadata = metadata.isEmpty ? nil : metadata
        attributes = Dictionary(
            messages(request.participant_attributes, request.n_participant_attributes) {
                (String($0.key), String($0.value))
            }
        ) { $1 }
        tracks = messages(request.add_track_requests, min(request.n_add_track_requests, Self.maximumTracks)) {
            TrackRequest($0)
        }
        if let offer = request.publisher_offer?.pointee, let sdp = offer.sdp, sdp.pointee != 0 {
            self.offer = ClientSignal.Description(offer)
        }
        if request.reconnect != 0 { resumes = String(request.participant_sid) }
    }

    /// `1` and `0`, or words.
    private static func flag(_ text: String?) -> Bool? {
        switch text?.lowercased() {
        case "1", "true": true
        case "0", "false": false
        default: nil
        }
    }

    /// Base64 of either alphabet, with or without padding; a blank stands for a `+` that was not escaped.
    static func base64(_ text: String) -> [UInt8]? {
        var plain = text.replacing("-", with: "+").replacing("_", with: "/").replacing(" ", with: "+")
        plain.removeAll { $0 == "=" }
        plain += String(repeating: "=", count: (4 - plain.utf8.count % 4) % 4)
        return Data(base64Encoded: plain).map { [UInt8]($0) }
    }
}
