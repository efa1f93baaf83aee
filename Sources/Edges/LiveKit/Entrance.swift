import AccessTokens
import EdgeSupport
import MediaControl
import Primitives
import RoomService
import Rooms

/// Admits a client, or lets it resume, before its socket opens: a refusal is an HTTP response.
struct Entrance: Sendable {
    let context: EdgeContext
    let claims: AccessClaims
    let parameters: JoinParameters
    /// Where the client is; for limits only.
    let address: String
    let origin: String?

    /// A stay that begins, or is resumed, on the socket that is about to open.
    func enter() async throws(Problem) -> LiveKitSession {
        do throws(RoomError) {
            guard let participant = parameters.resumes else { return try await join() }
            return try await resume(participant)
        } catch {
            throw Problem(error)
        }
    }

    /// Throws the problem with which `enter` would refuse the client, without admitting it.
    func check() async throws(Problem) {
        do throws(RoomError) {
            // A client that resumes is in the room already, or is notified on the socket to join anew.
            guard let participant = parameters.resumes else { return try await context.rooms.checkJoin(request) }
            try await checkReplaced(participant)
        } catch {
            throw Problem(error)
        }
    }

    private func join() async throws(RoomError) -> LiveKitSession {
        let joined = try await context.rooms.join(request)
        let snapshot = joined.snapshot
        let policy = try? await context.rooms.rules(ofRoom: snapshot.room.name).policy
        let reply = JoinReply(
            room: snapshot.room, participant: snapshot.participant, others: snapshot.others, iceServers: iceServers,
            isSubscriberPrimary: request.offering == .serverAtOnce, server: context.server,
            codecs: policy?.publishedCodecs ?? Codec.enabled, pingInterval: pingInterval)
        return session(
            joined.session, joined.events, joined.attachment,
            greeting: [.join(reply)]
                + (snapshot.dataTracks.isEmpty ? [] : [.dataTracksReceived(snapshot.dataTracks)]),
            people: [snapshot.participant] + snapshot.others, start: joined.start)
    }

    /// A participant that is no longer known must join anew: it is notified on the socket, as its client expects.
    private func resume(_ participant: String) async throws(RoomError) -> LiveKitSession {
        let returned: ReturnedSession
        do throws(RoomError) {
            returned = try await context.rooms.resume(participant: participant, claims: claims)
        } catch {
            guard [.sessionNotFound, .resumeTooLate, .grantsChanged].contains(error.code) else { throw error }
            try await checkReplaced(participant)
            return LiveKitSession(
                context: context, claims: claims, parameters: parameters,
                greeting: [.leave(.stateMismatch, .reconnect)], stay: nil)
        }
        let snapshot = returned.snapshot
        let people = [snapshot.participant] + snapshot.others
        var greeting: [ServerSignal] = [.reconnect(iceServers, lastSequence: returned.lastSequence)]
        if snapshot.room.name == claims.video.room {
            greeting.append(.update(people))
            for gone in returned.departedForGood {
                greeting.append(
                    .left(ParticipantInfo(sid: gone.participant, identity: gone.identity), gone.reason))
            }
            greeting += [.room(snapshot.room), .dataTracksReceived(snapshot.dataTracks)]
        } else {
            // It was moved while its socket was down.
            greeting += EventTranslator.moved(
                snapshot, token: context.gate.returnToken(claims, room: snapshot.room.name))
        }
        // It is connected, and has missed changes.
        greeting += EventTranslator.quality(of: people)
        return session(
            returned.session, returned.events, returned.attachment, greeting: greeting, people: people, start: .resumed)
    }

    /// By joining, a device that wakes up would end the newer session of its identity. LiveKit's SDKs join after any message on the socket, but give up after a
    /// 403.
    private func checkReplaced(_ participant: String) async throws(RoomError) {
        guard await context.rooms.isReplaced(participant: participant, claims) else { return }
        throw RoomError(.permissionDenied, "a newer session has this identity")
    }

    private func session(
        _ session: SessionID, _ events: SessionEvents, _ attachment: UInt64, greeting: [ServerSignal],
        people: [ParticipantInfo], start: SessionStart
    ) -> LiveKitSession {
        LiveKitSession(
            context: context, claims: claims, parameters: parameters, greeting: greeting,
            stay: LiveKitSession.Stay(
                session: session, events: events, attachment: attachment, people: people, start: start))
    }

    /// In seconds. Two pings may be lost within the keep-alive time.
    private var pingInterval: Int32 {
        Int32(max(1, min(5, context.rooms.configuration.keepAliveTimeout.seconds / 3)))
    }

    private var iceServers: [ICEServer] {
        context.iceServers.servers(for: claims, room: claims.video.room, origin: origin)
    }

    private var request: JoinRequest {
        var request = JoinRequest(claims: claims)
        request.address = address
        request.autoSubscribe = parameters.autoSubscribe
        request.subscribesToDataTracks = parameters.subscribesToDataTracks
        request.awaitsPermission = true
        request.wantsRoster = true
        request.wantsSpeakers = true
        request.wantsConnections = true
        request.dataProtocol = .liveKit
        request.recovery = .byJoining
        // `room_moved` came with protocol 16.
        request.understandsMoves = parameters.protocolVersion > 15
        // On its message of an unmuted track, clients unmute without asking the person.
        request.understandsUnmuteRequests = false
        request.streamNames = .publisherAndTrack
        request.receivingConnection = parameters.receivingConnection
        request.offering = offering
        request.clientTraits = parameters.client
        // As far beyond the estimate as a participant may ask for: the smallest layers of many videos.
        if !parameters.mayHoldVideo { request.bandwidth.shortage = .oversend(.kilobitsPerSecond(10_000)) }
        if claims.video.canUpdateOwnMetadata {
            request.metadata = parameters.metadata
            request.attributes = parameters.attributes
        }
        return request
    }

    /// With two connections, the one for receiving is offered first and at once, unless the client is too old for that or receives nothing.
    private var offering: Offering {
        guard parameters.generation == .dual else { return .client }
        return parameters.protocolVersion > 2 && claims.video.canSubscribe != false ? .serverAtOnce : .server
    }
}

extension RoomPolicy {
    /// What clients may publish, preferred codecs first. A client that chose a codec which is not permitted sends the answer's, but takes the demand for that
    /// codec for the demand for a backup codec, and publishes the video a second time.
    fileprivate var publishedCodecs: [Codec] {
        func codecs(_ kind: MediaKind, _ permitted: [Codec]) -> [Codec] {
            let known = Codec.enabled.filter { $0.kind == kind }
            return permitted.isEmpty ? known : permitted.filter(known.contains)
        }
        return codecs(.audio, audioCodecs) + codecs(.video, videoCodecs)
    }
}

extension JoinParameters {
    /// The name of the connection on which the client offers.
    var offeringConnection: String { generation == .single ? "main" : "publisher" }
    /// The name of the connection on which it receives.
    var receivingConnection: String { generation == .single ? "main" : Room.serverConnection }
}
