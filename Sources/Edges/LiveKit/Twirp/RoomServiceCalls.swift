import AccessTokens
import CLiveKitProtocol
import EdgeSupport
import HTTPServing
import MediaControl
import Primitives
import RoomService
import Rooms

/// One call of `livekit.RoomService`, carried out by the `RoomHost` that the control API uses, too.
struct RoomServiceCalls: Sendable {
    let context: EdgeContext
    let claims: AccessClaims
    let request: HTTPRequest

    private var rooms: RoomHost { context.rooms }
    private var body: TwirpBody { TwirpBody(request: request) }

    func perform(_ method: String) async throws(TwirpError) -> HTTPResponse {
        switch method {
        case "CreateRoom": try await createRoom()
        case "ListRooms": try await listRooms()
        case "DeleteRoom": try await deleteRoom()
        case "UpdateRoomMetadata": try await updateRoomMetadata()
        case "ListParticipants": try await listParticipants()
        case "GetParticipant": try await getParticipant()
        case "RemoveParticipant": try await removeParticipant()
        case "MutePublishedTrack": try await mutePublishedTrack()
        case "UpdateParticipant": try await updateParticipant()
        case "UpdateSubscriptions": try await updateSubscriptions()
        case "SendData": try await sendData()
        case "MoveParticipant": try await moveParticipant()
        case "PerformRpc": try await performRPC()
        case "ForwardParticipant":
            throw TwirpError(
                .unimplemented,
                "a participant is in one room at a time: MoveParticipant moves it, and a recording plays its media into others"
            )
        default: throw TwirpError(.badRoute, "livekit.RoomService has no method \(method)")
        }
    }

    // MARK: Who may

    /// A missing grant is "unauthenticated" in LiveKit's API.
    private func check(_ permits: Bool) throws(TwirpError) {
        guard permits else { throw TwirpError(.unauthenticated, "permissions denied: the token lacks the grant") }
    }

    private func checkModerates(_ room: String) throws(TwirpError) {
        try check(claims.video.roomAdmin && covers(room))
    }

    /// A token for one room is not valid for another.
    private func covers(_ room: String) -> Bool {
        let granted = claims.video.room ?? ""
        return granted.isEmpty || granted == room
    }

    private func asking<Value: Sendable>(
        _ body: () async throws(RoomError) -> Value
    ) async throws(TwirpError) -> Value {
        do throws(RoomError) { return try await body() } catch { throw TwirpError(error) }
    }

    // MARK: Rooms

    /// Makes a room, or changes the settings of an existing one.
    private func createRoom() async throws(TwirpError) -> HTTPResponse {
        try check(claims.video.roomCreate)
        let (name, metadata, document, isRecorded) = try body.read(
            livekit__create_room_request__init, livekit__create_room_request__unpack
        ) { message in
            // Values are clamped to their range: otherwise the control API could not edit the policy.
            func bounded<Value: FixedWidthInteger>(_ value: UInt32, _ range: ClosedRange<Value>) -> Value? {
                value > 0 ? min(Value(clamping: value), range.upperBound) : nil
            }
            typealias Ranges = PolicyDocument.Ranges
            var document = PolicyDocument()
            document.emptyTimeout = bounded(message.empty_timeout, Ranges.emptyTimeoutSeconds).map { .seconds($0) }
            document.departureTimeout = bounded(message.departure_timeout, Ranges.departureTimeoutSeconds)
                .map { .seconds($0) }
            document.maxParticipants = bounded(message.max_participants, Ranges.participants)
            document.minPlayoutDelay = bounded(message.min_playout_delay, Ranges.playoutDelayMilliseconds)
                .map { .milliseconds($0) }
            document.maxPlayoutDelay = bounded(message.max_playout_delay, Ranges.playoutDelayMilliseconds)
                .map { .milliseconds($0) }
            let egress = message.egress?.pointee
            let isRecorded = egress?.room != nil || egress?.tracks != nil || egress?.participant != nil
            return (String(message.name), String(message.metadata), document, isRecorded)
        }
        try check(covers(name))
        // If this were ignored, nobody would notice before a recording is missing.
        guard !isRecorded else {
            throw TwirpError(.unimplemented, "egress of a room is not available on this server: its policy records it")
        }
        let info = try await asking { () async throws(RoomError) -> RoomInfo in
            do throws(RoomError) {
                return try await rooms.createRoom(
                    named: name.isEmpty ? nil : name, policy: document, metadata: metadata)
            } catch {
                guard error.code == .roomExists else { throw error }
            }
            try await rooms.changePolicy(ofRoom: name) { $0.overlaid(by: document) }
            return try await metadata.isEmpty
                ? rooms.room(named: name).info : rooms.setMetadata(metadata, ofRoom: name)
        }
        return try await reply(room: info)
    }

    private func listRooms() async throws(TwirpError) -> HTTPResponse {
        try check(claims.video.roomList)
        let names = try body.read(livekit__list_rooms_request__init, livekit__list_rooms_request__unpack) {
            Set([String](texts: $0.names, $0.n_names))
        }
        let shown = await rooms.listRooms().filter { room in
            (names.isEmpty || names.contains(room.name)) && covers(room.name)
        }
        let arena = MessageArena()
        return body.reply(
            arena,
            arena.make(livekit__list_rooms_response__init) { message in
                message.n_rooms = shown.count
                message.rooms = arena.list(shown.map(arena.room))
            })
    }

    private func deleteRoom() async throws(TwirpError) -> HTTPResponse {
        let name = try body.read(livekit__delete_room_request__init, livekit__delete_room_request__unpack) {
            String($0.room)
        }
        try check(claims.video.roomCreate && covers(name))
        try await asking { () async throws(RoomError) in _ = try await rooms.deleteRoom(named: name) }
        return body.empty
    }

    private func updateRoomMetadata() async throws(TwirpError) -> HTTPResponse {
        let (name, metadata) = try body.read(
            livekit__update_room_metadata_request__init, livekit__update_room_metadata_request__unpack
        ) { (String($0.room), String($0.metadata)) }
        try checkModerates(name)
        return try await reply(
            room: asking { () async throws(RoomError) in try await rooms.setMetadata(metadata, ofRoom: name) })
    }

    /// Sends data to the named participants, or to everybody.
    private func sendData() async throws(TwirpError) -> HTTPResponse {
        let (name, data) = try body.read(livekit__send_data_request__init, livekit__send_data_request__unpack) {
            message in
            var to = [String](texts: message.destination_identities, message.n_destination_identities)
            to += [String](texts: message.destination_sids, message.n_destination_sids)
            var data = RoomMessage(
                topic: message.optional_topic_case == LIVEKIT__SEND_DATA_REQUEST__OPTIONAL_TOPIC_TOPIC
                    ? String(message.topic) : "",
                content: .binary([UInt8](message.data)),
                isReliable: message.kind != LIVEKIT__DATA_PACKET__KIND__LOSSY, to: to.isEmpty ? nil : to)
            data.nonce = [UInt8](message.nonce)
            return (String(message.room), data)
        }
        try checkModerates(name)
        try await asking { () async throws(RoomError) in try await rooms.send(data, toRoom: name) }
        return body.empty
    }

    private func reply(room info: RoomInfo) async throws(TwirpError) -> HTTPResponse {
        let policy = try await asking { () async throws(RoomError) in try await rooms.rules(ofRoom: info.name).policy }
        let arena = MessageArena()
        let message = arena.room(info)
        message.pointee.empty_timeout = UInt32(clamping: Int(policy.emptyTimeout.seconds))
        message.pointee.departure_timeout = UInt32(clamping: Int(policy.departureTimeout.seconds))
        return body.reply(arena, message)
    }

    // MARK: Participants

    private func listParticipants() async throws(TwirpError) -> HTTPResponse {
        let name = try body.read(
            livekit__list_participants_request__init, livekit__list_participants_request__unpack
        ) { String($0.room) }
        try checkModerates(name)
        let people = try await asking { () async throws(RoomError) -> [ParticipantInfo] in
            do throws(RoomError) { return try await rooms.room(named: name).participants.map(\.info) } catch {
                // A room that does not exist has no participants: LiveKit's server answers that, and programs ask before the first participant has joined.
                guard error.code == .roomNotFound else { throw error }
                return []
            }
        }
        let arena = MessageArena()
        return body.reply(
            arena,
            arena.make(livekit__list_participants_response__init) { message in
                message.n_participants = people.count
                message.participants = arena.list(people.map { arena.participant($0) })
            })
    }

    /// Room and identity of the request, if the token may moderate the room.
    private func subject() throws(TwirpError) -> (room: String, identity: String) {
        let subject = try body.read(
            livekit__room_participant_identity__init, livekit__room_participant_identity__unpack
        ) { (String($0.room), String($0.identity)) }
        try checkModerates(subject.0)
        return subject
    }

    private func getParticipant() async throws(TwirpError) -> HTTPResponse {
        let (room, identity) = try subject()
        return reply(
            try await asking { () async throws(RoomError) in try await rooms.participant(identity, in: room).info })
    }

    private func reply(_ info: ParticipantInfo) -> HTTPResponse {
        let arena = MessageArena()
        return body.reply(arena, arena.participant(info))
    }

    private func removeParticipant() async throws(TwirpError) -> HTTPResponse {
        let (room, identity) = try subject()
        try await asking { () async throws(RoomError) in _ = try await rooms.remove(identity, from: room) }
        return body.empty
    }

    private func moveParticipant() async throws(TwirpError) -> HTTPResponse {
        let (room, identity, destination) = try body.read(
            livekit__move_participant_request__init, livekit__move_participant_request__unpack
        ) { (String($0.room), String($0.identity), String($0.destination_room)) }
        try checkModerates(room)
        try check(claims.video.destinationRoom == destination || (claims.video.room ?? "").isEmpty)
        guard !destination.isEmpty else { throw TwirpError(.invalidArgument, "destination_room is missing") }
        guard destination != room else { throw TwirpError(.invalidArgument, "destination_room is the same as room") }
        try await asking { () async throws(RoomError) in
            _ = try await rooms.move(identity, from: room, to: destination)
        }
        return body.empty
    }

    /// Calls a method that the participant's client has registered, and waits for what it returns.
    private func performRPC() async throws(TwirpError) -> HTTPResponse {
        let call = try body.read(livekit__perform_rpc_request__init, livekit__perform_rpc_request__unpack) {
            MemberCall($0)
        }
        try checkModerates(call.room)
        try call.check()
        let outcome = try await asking { () async throws(RoomError) in
            try await rooms.call(
                call.identity, in: call.room, protocol: DataProtocol.liveKit.name,
                within: .milliseconds(call.milliseconds)
            ) { number in
                DataPackets.call(
                    call.method, payload: call.payload, number: number, to: call.identity, within: call.milliseconds)
            }
        }
        switch outcome {
        case .returned(let payload): return body.reply("payload", 1, payload)
        case .failed(let code, let message, let data):
            throw TwirpError(.unknown, message, meta: ["rpc_code": String(code), "rpc_data": data])
        case .acknowledged, nil:
            throw TwirpError(.deadlineExceeded, "the participant has not answered in time, or has left")
        }
    }

    private func mutePublishedTrack() async throws(TwirpError) -> HTTPResponse {
        let (room, identity, track, muted) = try body.read(
            livekit__mute_room_track_request__init, livekit__mute_room_track_request__unpack
        ) { (String($0.room), String($0.identity), String($0.track_sid), $0.muted != 0) }
        try checkModerates(room)
        guard muted else { throw TwirpError(.failedPrecondition, "only the publisher can unmute its track") }
        let info = try await asking { () async throws(RoomError) in
            try await rooms.setMuted(true, track: track, of: identity, in: room)
        }
        let arena = MessageArena()
        return body.reply(arena, arena.make(livekit__mute_room_track_response__init) { $0.track = arena.track(info) })
    }

    /// Empty strings change nothing; permissions replace all.
    private func updateParticipant() async throws(TwirpError) -> HTTPResponse {
        let (room, identity, name, metadata, attributes, permission) = try body.read(
            livekit__update_participant_request__init, livekit__update_participant_request__unpack
        ) { message in
            (
                String(message.room), String(message.identity), String(message.name), String(message.metadata),
                Dictionary(messages(message.attributes, message.n_attributes) { (String($0.key), String($0.value)) }) {
                    $1
                }, message.permission.map { PermissionChange($0.pointee) }
            )
        }
        try checkModerates(room)
        let info = try await asking { () async throws(RoomError) -> ParticipantInfo in
            let changed = try await rooms.change(identity, in: room) { detail -> Result<_, Never> in
                var change = RoomHost.ParticipantChange()
                if !name.isEmpty { change.name = name }
                if !metadata.isEmpty { change.metadata = metadata }
                if !attributes.isEmpty { change.attributes = attributes }
                change.permissions = permission?.applied(to: detail.info.permissions)
                return .success(change)
            }
            return changed.get().info
        }
        return reply(info)
    }

    private func updateSubscriptions() async throws(TwirpError) -> HTTPResponse {
        let (room, identity, tracks, subscribes) = try body.read(
            livekit__update_subscriptions_request__init, livekit__update_subscriptions_request__unpack
        ) { message in
            let named = messages(message.participant_tracks, message.n_participant_tracks) {
                [String](texts: $0.track_sids, $0.n_track_sids)
            }.flatMap(\.self)
            return (
                String(message.room), String(message.identity),
                Set([String](texts: message.track_sids, message.n_track_sids) + named), message.subscribe != 0
            )
        }
        try checkModerates(room)
        _ = try await asking { () async throws(RoomError) in try await rooms.participant(identity, in: room) }
        // A track that no longer exists, or that this participant may not receive, does not stop the others.
        for track in tracks.sorted() {
            try? await rooms.perform(
                subscribes ? .subscribe(track: track) : .unsubscribe(track: track), as: identity, in: room)
        }
        return body.empty
    }
}

/// A call of a method of a participant's client.
private struct MemberCall: Sendable {
    let room: String
    let identity: String
    let method: String
    let payload: String
    /// How long to wait for the answer.
    let milliseconds: Int

    /// LiveKit's limit for the payload of one packet, in bytes.
    private static let longestPayload = 15_360
    /// LiveKit's default; and the maximum, below the 30 s after which the HTTP server abandons a call.
    private static let usualWait = 10_000, longestWait = 25_000

    init(_ message: Livekit__PerformRpcRequest) {
        room = String(message.room)
        identity = String(message.destination_identity)
        method = String(message.method)
        payload = String(message.payload)
        let wait = Int(message.response_timeout_ms)
        milliseconds = wait == 0 ? Self.usualWait : min(wait, Self.longestWait)
    }

    /// Refuses what no client takes.
    func check() throws(TwirpError) {
        guard !identity.isEmpty, !method.isEmpty else {
            throw TwirpError(.invalidArgument, "destination_identity and method are needed")
        }
        guard payload.utf8.count <= Self.longestPayload else {
            throw TwirpError(.invalidArgument, "the payload is longer than \(Self.longestPayload) bytes")
        }
    }
}

/// The permissions in a call: all but those that cannot change during a stay.
private struct PermissionChange: Sendable {
    let canSubscribe: Bool
    let canPublish: Bool
    let canPublishData: Bool
    let canUpdateMetadata: Bool
    let sources: Set<TrackSource>

    init(_ message: Livekit__ParticipantPermission) {
        canSubscribe = message.can_subscribe != 0
        canPublish = message.can_publish != 0
        canPublishData = message.can_publish_data != 0
        canUpdateMetadata = message.can_update_metadata != 0
        sources = Set((0..<message.n_can_publish_sources).map { TrackSource(message.can_publish_sources[$0]) })
    }

    func applied(to permissions: Permissions) -> Permissions {
        var permissions = permissions
        permissions.canSubscribe = canSubscribe
        permissions.canPublish = canPublish
        permissions.canPublishData = canPublishData
        permissions.canUpdateMetadata = canUpdateMetadata
        permissions.publishSources = sources.isEmpty ? nil : sources
        return permissions
    }
}

extension PolicyDocument {
    /// The policy in a call to make a room, laid over the room's existing one.
    fileprivate func overlaid(by other: PolicyDocument) -> PolicyDocument {
        var document = self
        document.emptyTimeout = other.emptyTimeout ?? emptyTimeout
        document.departureTimeout = other.departureTimeout ?? departureTimeout
        document.maxParticipants = other.maxParticipants ?? maxParticipants
        document.minPlayoutDelay = other.minPlayoutDelay ?? minPlayoutDelay
        document.maxPlayoutDelay = other.maxPlayoutDelay ?? maxPlayoutDelay
        return document
    }
}
