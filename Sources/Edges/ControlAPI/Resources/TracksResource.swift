import AccessTokens
import EdgeSupport
import HTTPServing
import RoomService
import Rooms

/// Tracks of a room, and who is subscribed to them.
struct TracksResource: Resource {
    let access: APIAccess

    var operations: [Operation] {
        let track = "/v1/rooms/{room}/tracks/{track}"
        return [
            .get("/v1/rooms/{room}/tracks", listTracks),
            .get(track, showTrack),
            .get("\(track)/stats", showTrackStatistics),
            .post("\(track)/mute", muteTrack),
            .post("\(track)/unmute-request", requestUnmute),
            .get("/v1/rooms/{room}/subscriptions", listSubscriptions),
        ]
    }

    func listTracks(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        let tracks = try await detail(request).participants.flatMap { participant in
            participant.info.tracks.map { (key: "\(participant.order)-\($0.sid)", info: $0) }
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

    /// Mutes; unmuting is the publisher's own to do.
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
        let subscriptions = try await detail(request).participants.flatMap { participant in
            participant.subscriptions.map { (key: "\(participant.order)-\($0.sid)", info: $0) }
        }
        return try ListPage(of: subscriptions, request) { $0.key }
            .response("subscriptions") { SubscriptionModel($0.info) }
    }

    private static var noSuchTrack: Problem { Problem(RoomError(.trackNotFound, "There is no such track.")) }
}

/// The body of a mute; nothing means `true`.
struct MuteRequest: Decodable {
    var muted: Bool?

    private enum CodingKeys: String, CodingKey, CaseIterable { case muted }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        muted = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(Bool.self, forKey: .muted)
    }
}
