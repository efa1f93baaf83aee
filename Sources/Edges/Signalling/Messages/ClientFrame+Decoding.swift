import AccessTokens
import EdgeSupport
import MediaControl
import Rooms

extension ClientFrame {
    /// Reads one text frame. Never fails: what is wrong becomes the frame's error, with the request's id if it has one.
    init(text: String) {
        do {
            self = try JSONCoding.decode(Self.self, from: Array(text.utf8))
            request = request.mapError { $0.explained(by: text) }
        } catch {
            self.init(id: nil, request: .failure(.malformed(error)))
        }
    }
}

extension ClientFrame: Decodable {
    init(from decoder: any Decoder) throws {
        let fields = Fields(try decoder.container(keyedBy: AnyKey.self))
        do throws(SignallingError) {
            id = try fields.integer("id")
        } catch {
            id = nil
            request = .failure(error)
            return
        }
        if let id, !(1...(1 << 53 - 1)).contains(id) {
            self.id = nil
            request = .failure(.malformed(fields.fault("id", wanted: "1 to 9007199254740991")))
            return
        }
        request = Result { () throws(SignallingError) in try ClientRequest(fields) }
    }
}

extension ClientRequest {
    /// Reads the fields that go with the type.
    fileprivate init(_ fields: Fields) throws(SignallingError) {
        switch try fields.required(fields.text("type"), "type") {
        case "join": self = .join(try JoinFields(fields))
        case "resume":
            let sequence = try fields.required(fields.integer("seq"), "seq")
            guard let sequence = UInt64(exactly: sequence) else {
                throw .invalid(fields.fault("seq", wanted: "0 or more"))
            }
            self = .resume(
                session: SessionID(try fields.requiredText("session")), after: sequence, room: try fields.text("room"))
        case "snapshot": self = .snapshot
        case "allocation": self = .allocation
        case "offer": self = .offer(connection: try fields.connection(), sdp: try fields.requiredText("sdp"))
        case "answer": self = .answer(connection: try fields.connection(), sdp: try fields.requiredText("sdp"))
        case "ice":
            self = .ice(
                connection: try fields.connection(), candidate: try fields.text("candidate"),
                mid: try fields.text("mid"))
        case "bye":
            self = .bye(
                connection: try fields.connection(),
                keepsSubscriptions: try fields.flag("keepSubscriptions") ?? false)
        case "lock": self = .lock(password: try fields.text("password"))
        case "unlock": self = .unlock
        case "token": self = .refresh(token: try fields.requiredText("token"))
        case "ping": self = .ping
        case "leave": self = .leave
        case let type: self = .perform(try Self.sessionRequests(type, fields))
        }
    }

    private static func sessionRequests(_ type: String, _ fields: Fields) throws(SignallingError) -> [SessionRequest] {
        switch type {
        case "announce": try announcements(fields)
        case "unpublish": [.unpublish(track: try fields.track())]
        case "mute": [.setMuted(track: try fields.track(), try fields.requiredFlag("muted"))]
        case "subscribe": try subscribing(fields)
        case "unsubscribe": [.unsubscribe(track: try fields.track())]
        case "autoSubscribe": [.setAutoSubscribe(try fields.requiredFlag("enabled"))]
        case "pause": [.setPaused(track: try fields.track(), try fields.requiredFlag("paused"))]
        case "layer": [.setPreference(track: try fields.track(), try fields.preference())]
        case "view": [.setView(track: try fields.track(), try fields.view())]
        case "bandwidth": [.setBandwidth(try fields.bandwidth())]
        case "pauseAllVideo": [.pauseAllVideo(try fields.requiredFlag("paused"))]
        case "audioOnly": [.setAudioOnly(try fields.requiredFlag("enabled"))]
        case "metadata": [.setMetadata(name: try fields.text("name"), metadata: try fields.text("metadata"))]
        case "keyframe": [.requestKeyframe(track: try fields.track())]
        case "speakers": [.wantSpeakers(try fields.requiredFlag("enabled"))]
        case "audience": [.setAudience(try fields.texts("identities").map { Audience($0) })]
        case "roster": [.requestRoster]
        case "requestUnmute": [.requestUnmute(track: try fields.track())]
        case "letIn": [.letIn(identity: try fields.requiredText("identity"))]
        case "turnAway": [.turnAway(identity: try fields.requiredText("identity"))]
        case "report": [.report(try playbackReports(fields))]
        case "remove": [.remove(participant: try fields.requiredText("participant"))]
        case "relay": [.relay(to: try fields.requiredText("to"), payload: try fields.requiredText("payload"))]
        case "data": [.send(try fields.message())]
        default: throw .unknownType
        }
    }

    /// As many as a participant can have subscriptions by default.
    private static let maximumReports = 1_000

    private static func playbackReports(_ fields: Fields) throws(SignallingError) -> [PlaybackReport] {
        let list = try fields.objects("tracks")
        guard (1...maximumReports).contains(list.count) else {
            throw .invalid(fields.fault("tracks", wanted: "an array of 1 to \(maximumReports) objects"))
        }
        var reports: [PlaybackReport] = []
        for track in list { reports.append(try track.playbackReport()) }
        return reports
    }

    /// A subscription may begin with its preferences: nothing is sent before they apply.
    private static func subscribing(_ fields: Fields) throws(SignallingError) -> [SessionRequest] {
        let track = try fields.track(), view = try fields.view()
        return view == TrackView()
            ? [.subscribe(track: track)] : [.subscribe(track: track), .setView(track: track, view)]
    }

    /// No honest client sends more than this many in one message.
    private static let maximumAnnouncements = 64

    private static func announcements(_ fields: Fields) throws(SignallingError) -> [SessionRequest] {
        let list = try fields.objects("tracks")
        guard (1...maximumAnnouncements).contains(list.count) else {
            throw .invalid(fields.fault("tracks", wanted: "an array of 1 to \(maximumAnnouncements) objects"))
        }
        var requests: [SessionRequest] = []
        for track in list { requests.append(.announce(try track.announcement())) }
        return requests
    }
}

extension JoinFields {
    fileprivate init(_ fields: Fields) throws(SignallingError) {
        room = try fields.text("room")
        password = try fields.text("password")
        name = try fields.text("name")
        metadata = try fields.text("metadata")
        profile = try fields.word("profile") ?? .full
        autoSubscribe = try fields.flag("autoSubscribe") ?? true
        audioOnly = try fields.flag("audioOnly") ?? false
        encrypted = try fields.flag("encrypted") ?? false
        roster = try fields.flag("roster")
        speakers = try fields.flag("speakers") ?? false
        client = try fields.text("client")
        trace = try fields.text("traceparent").flatMap { TraceContext(traceparent: $0) }
        data = try fields.flag("data")
        let offers: OfferingSide = try fields.word("offers") ?? .server
        makesAllOffers = offers == .client
        if try fields.text("receivingConnection") != nil {
            receivingConnection = try fields.connection("receivingConnection")
        }
        bandwidth = try fields.object("bandwidth")?.bandwidth() ?? BandwidthProfile()
        if let count = try fields.integer("maxVideoSubscriptions"), bandwidth.maxVideoSubscriptions == nil {
            guard (0...1_000).contains(count) else {
                throw .invalid(fields.fault("maxVideoSubscriptions", wanted: "0 to 1000"))
            }
            bandwidth.maxVideoSubscriptions = Int(count)
        }
    }
}

extension JoinFields {
    /// The request that follows from the token's claims and these fields; `queryRoom` is the room in the URL, `userAgent` the client's
    /// name if the fields contain none.
    func request(_ claims: AccessClaims, queryRoom: String?, userAgent: String?) -> JoinRequest {
        var request = JoinRequest(claims: claims, room: room ?? queryRoom)
        request.password = password
        request.name = name
        request.metadata = metadata
        request.profile = profile
        request.autoSubscribe = autoSubscribe
        request.audioOnly = audioOnly
        request.encrypts = encrypted
        request.client = client ?? userAgent
        request.wantsRoster = roster
        request.wantsSpeakers = speakers
        request.wantsMessages = data
        request.receivingConnection = receivingConnection
        if makesAllOffers { request.offering = .client }
        request.bandwidth = bandwidth
        return request
    }
}

/// Who makes the offers for what a client receives.
private enum OfferingSide: String, CaseIterable { case server, client }
