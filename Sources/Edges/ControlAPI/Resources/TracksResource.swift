import AccessTokens
import EdgeSupport
import HTTPServing
import MediaControl
import RoomService
import Rooms

/// Tracks of a room, and who is subscribed to them.
struct TracksResource: Resource {
    let access: APIAccess

    var operations: [Operation] {
        let track = "/v1/rooms/{room}/tracks/{track}"
        let subscription = "/v1/rooms/{room}/subscriptions/{subscription}"
        return [
            .get("/v1/rooms/{room}/tracks", listTracks),
            .get(track, showTrack),
            .get("\(track)/stats", showTrackStatistics),
            .get("\(track)/history", listTrackSamples),
            .post("\(track)/mute", muteTrack),
            .post("\(track)/unmute-request", requestUnmute),
            .get("/v1/rooms/{room}/subscriptions", listSubscriptions),
            .get(subscription, showSubscription),
            .get("\(subscription)/stats", showSubscriptionStatistics),
            .get("\(subscription)/decisions", listDecisions),
            .get("\(subscription)/history", listSubscriptionSamples),
        ]
    }

    func listTracks(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let kind: MediaKind? = try request.word("kind"), source: TrackSource? = try request.word("source")
        let tracks = try await detail(request).participants.flatMap { participant in
            participant.info.tracks.filter { (kind ?? $0.kind) == $0.kind && (source ?? $0.source) == $0.source }
                .map { (key: "\(participant.order)-\($0.sid)", info: $0) }
        }
        return try ListPage(of: tracks, request) { $0.key }.response("tracks") { TrackModel($0.info) }
    }

    func showTrack(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let sid = try request.parameter("track")
        let tracks = try await detail(request).participants.flatMap(\.info.tracks)
        guard let track = tracks.first(where: { $0.sid == sid }) else { throw Self.noSuchTrack }
        return .json(TrackModel(track))
    }

    func showTrackStatistics(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let sid = try request.parameter("track")
        let tracks = try await report(request).participants.flatMap(\.tracks)
        guard let track = tracks.first(where: { $0.info.sid == sid }) else { throw Self.noSuchTrack }
        return .json(TrackStatisticsModel(track))
    }

    /// Mutes a track; only the publisher can unmute it.
    func muteTrack(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let sid = try request.parameter("track")
        let change = try body(MuteRequest.self, of: request)
        let track = try await asking { () async throws(RoomError) in
            try await context.rooms.setMuted(change.muted ?? true, track: sid, in: room)
        }
        return .json(TrackModel(track))
    }

    /// Asks the publisher of a muted track to unmute it.
    func requestUnmute(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try moderatedRoom(request)
        let sid = try request.parameter("track")
        let track = try await asking { () async throws(RoomError) in
            try await context.rooms.requestUnmute(track: sid, in: room)
        }
        return .json(TrackModel(track), status: 202)
    }

    func listSubscriptions(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let kind: MediaKind? = try request.word("kind")
        let track = request.query["track"], subscriber = request.query["participant"]
        let subscribers = try await detail(request).participants.filter {
            subscriber == nil || $0.info.sid == subscriber || $0.info.identity == subscriber
        }
        let subscriptions = subscribers.flatMap { participant in
            participant.subscriptions.filter { (kind ?? $0.kind) == $0.kind && (track == nil || $0.track == track) }
                .map { (key: "\(participant.order)-\($0.sid)", info: $0) }
        }
        return try ListPage(of: subscriptions, request) { $0.key }
            .response("subscriptions") { SubscriptionModel($0.info) }
    }

    func showSubscription(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        .json(SubscriptionModel(try await subscription(request).info))
    }

    func showSubscriptionStatistics(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let sid = try request.parameter("subscription")
        let subscriptions = try await report(request).participants.flatMap(\.subscriptions)
        guard let subscription = subscriptions.first(where: { $0.info.sid == sid }) else {
            throw Self.noSuchSubscription
        }
        return .json(SubscriptionStatisticsModel(subscription))
    }

    /// Why the subscription is sent as it is: the decisions about it, and the estimates of the subscriber's path.
    func listDecisions(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let (subscriber, info) = try await subscription(request)
        let room = try request.parameter("room")
        var report = try await asking { () async throws(RoomError) in
            try await context.rooms.decisions(about: subscriber, in: room)
        }
        report.decisions.removeAll { $0.subscription != info.sid }
        return .json(DecisionsModel(report))
    }

    func listTrackSamples(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let sid = try request.parameter("track")
        guard try await detail(request).participants.contains(where: { $0.info.tracks.contains { $0.sid == sid } })
        else { throw Self.noSuchTrack }
        return try await samples(of: sid, request)
    }

    func listSubscriptionSamples(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try await samples(of: try await subscription(request).info.sid, request)
    }

    private func samples(of sid: String, _ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let room = try request.parameter("room")
        let samples = try await asking { () async throws(RoomError) in
            try await context.rooms.history(ofStream: sid, in: room)
        }
        return .json(["samples": samples.map(StreamSampleModel.init)])
    }

    /// The subscription in the path, and the sid of its subscriber.
    private func subscription(
        _ request: HTTPRequest
    ) async throws(Problem) -> (subscriber: String, info: SubscriptionInfo) {
        let sid = try request.parameter("subscription")
        for participant in try await detail(request).participants {
            if let info = participant.subscriptions.first(where: { $0.sid == sid }) {
                return (participant.info.sid, info)
            }
        }
        throw Self.noSuchSubscription
    }

    private static var noSuchSubscription: Problem {
        Problem(RoomError(.subscriptionNotFound, "There is no such subscription."))
    }
    private static var noSuchTrack: Problem { Problem(RoomError(.trackNotFound, "There is no such track.")) }
}

/// The body of a mute; if it is empty, it means `true`.
struct MuteRequest: Decodable {
    var muted: Bool?

    private enum CodingKeys: String, CodingKey, CaseIterable { case muted }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        muted = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(Bool.self, forKey: .muted)
    }
}
