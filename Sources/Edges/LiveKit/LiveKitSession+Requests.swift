import EdgeSupport
import Logging
import MediaControl
import RoomService
import Rooms

extension LiveKitSession {
    /// Carries one request out.
    func handle(_ signal: ClientSignal, _ session: SessionID, _ socket: some LiveKitSocket) async {
        switch signal {
        case .offer(let offer): await answer(offer, session, socket)
        case .answer(let answer):
            await tolerating { () async throws(RoomError) in
                // Older clients say nothing of the offer.
                try await context.rooms.answer(
                    session, connection: Room.serverConnection, sdp: answer.sdp, to: answer.id == 0 ? nil : answer.id)
            }
        case .trickle(let candidate, let target):
            let connection =
                target == .subscriber ? parameters.receivingConnection : parameters.offeringConnection
            await tolerating { () async throws(RoomError) in
                try await context.rooms.candidate(
                    session, connection: connection, candidate: candidate, mid: nil)
            }
        case .addTrack(let request): await announce(request, session, socket)
        case .mute(let track, let muted): await setMuted(track, muted, session, socket)
        case .subscription(let tracks, let subscribes):
            for track in tracks { await subscribe(track, subscribes, session, socket) }
        case .trackSettings(let tracks, let settings):
            for track in tracks { await perform(.setViewInAdvance(track: track, TrackView(settings)), session) }
        case .leave: await leave()
        case .subscriptionPermission(let grants): await restrict(grants, session)
        case .syncState(let state): await synchronize(state, session, socket)
        case .simulate(.leave(let action)):
            socket.send(.leave(.unknown, action))
            if action == .disconnect { await leave() }
        case .ping: socket.send(.pong(context.rooms.wallClockMilliseconds))
        case .pingRequest(let timestamp):
            socket.send(.pongResponse(last: timestamp, now: context.rooms.wallClockMilliseconds))
        case .updateMetadata(let update): await apply(update, session, socket)
        case .updateTrack(let sid, let update): await apply(update, to: sid, session, socket)
        case .unsupported(let id): socket.send(.response(requestID: id, .unsupportedType, "not available"))
        case .publishDataTrack(let track): await publish(track, session, socket)
        case .unpublishDataTrack(let handle): await perform(.dataTrack(.unpublish(handle: handle)), session)
        case .dataSubscriptions(let subscriptions):
            await perform(.dataTrack(.setSubscriptions(subscriptions)), session)
        case .simulate(.other), .unknown: break
        }
    }

    private func answer(
        _ offer: ClientSignal.Description, _ session: SessionID, _ socket: some LiveKitSocket
    ) async {
        do throws(RoomError) {
            let answer = try await context.rooms.offer(
                session, connection: parameters.offeringConnection, sdp: offer.sdp)
            socket.send(
                .answer(
                    sdp: answer.sdp, id: offer.id, tracks: parameters.generation == .single ? answer.tracks : [:]))
        } catch {
            note(error)
            // Its stay has ended, or its connections have with a move: the session's events say what to do.
            if [.sessionNotFound, .connectionNotFound].contains(error.code) { return }
            // The protocol has no message for a refused description; without an answer the client would wait for one.
            // If the cause is temporary, the client may join anew.
            let isTemporary = [.mediaUnavailable, .overloaded, .rateLimited].contains(error.code)
            socket.send(.leave(.joinFailure, isTemporary ? .reconnect : .disconnect))
            await leave()
        }
    }

    /// Sends the sid of the track before its offer, which the client makes once it knows the sid.
    private func announce(_ request: TrackRequest, _ session: SessionID, _ socket: some LiveKitSocket) async {
        do throws(RoomError) {
            let info = try await context.rooms.announce(TrackAnnouncement(request), in: session)
            socket.send(.trackPublished(clientID: request.clientID, info))
        } catch {
            note(error)
            socket.send(.trackRefused(request, ServerSignal.Refusal(error.code), error.sentence))
        }
    }

    /// The session's events notify the client that it is published.
    private func publish(_ track: DataTrackInfo, _ session: SessionID, _ socket: some LiveKitSocket) async {
        do throws(RoomError) {
            try await context.rooms.perform(.dataTrack(.publish(track)), in: session)
        } catch {
            note(error)
            let mine = (try? await context.rooms.participant(session).dataTracks) ?? []
            socket.send(
                .dataTrackRefused(track, ServerSignal.Refusal(error.code, of: track, beside: mine), error.sentence))
        }
    }

    /// A client that unmutes more often than permitted believes that it is heard, so it is muted as if by a moderator.
    private func setMuted(
        _ track: String, _ muted: Bool, _ session: SessionID, _ socket: some LiveKitSocket
    ) async {
        do throws(RoomError) {
            try await context.rooms.perform(.setMuted(track: track, muted), in: session)
        } catch {
            note(error)
            if error.code == .rateLimited { socket.send(.mute(track: track, true)) }
        }
    }

    private func subscribe(
        _ track: String, _ subscribes: Bool, _ session: SessionID, _ socket: some LiveKitSocket
    ) async {
        do throws(RoomError) {
            try await context.rooms.perform(
                subscribes ? .subscribe(track: track) : .unsubscribe(track: track), in: session)
        } catch {
            note(error)
            // Otherwise a client would wait for media that does not come, or not before another subscription ends. What its publisher does not permit was announced.
            if subscribes, [.trackNotFound, .limitExceeded].contains(error.code) {
                socket.send(.subscriptionFailed(track: track, isKnown: error.code != .trackNotFound))
            }
        }
    }

    /// Grants name participants by sid or by identity.
    private func restrict(_ grants: [ClientSignal.TrackGrant]?, _ session: SessionID) async {
        guard let grants else { return await perform(.setAudience(nil), session) }
        let unnamed = grants.filter(\.identity.isEmpty).map(\.participant)
        let identities = await context.rooms.identities(of: unnamed, for: session)
        var audience = Audience()
        for grant in grants {
            let identity = grant.identity.isEmpty ? identities[grant.participant] : grant.identity
            if let identity { audience.grant(grant.tracks.map { Set($0) }, to: identity) }
        }
        do throws(RoomError) {
            try await context.rooms.perform(.setAudience(audience), in: session)
        } catch {
            // A client that believes that few receive its tracks must not send them to all.
            note(error)
            await perform(.setAudience([]), session)
        }
    }

    /// A client that publishes tracks unknown to the server must join anew. Its last requests about tracks of others may have been lost with its former socket.
    private func synchronize(
        _ state: ClientSignal.SyncState, _ session: SessionID, _ socket: some LiveKitSocket
    ) async {
        guard let known = try? await context.rooms.publications(of: session),
            let received = try? await context.rooms.subscriptions(of: session)
        else { return }
        guard Set(state.publications).subtracting([""]).isSubset(of: known) else {
            return socket.send(.leave(.stateMismatch, .reconnect))
        }
        // Several SDKs list every track that has not arrived yet as unwanted, even those published while they had no socket. A track that a client has agreed
        // to has arrived.
        let subscribed = Set(
            received.filter { state.subscribes || $0.state == .active }.compactMap(\.track))
        for track in state.tracks where subscribed.contains(track) != state.subscribes {
            await subscribe(track, state.subscribes, session, socket)
        }
        let sent = Set(received.filter { !$0.paused }.compactMap(\.track))
        for track in state.disabled where sent.contains(track) {
            await perform(.setPaused(track: track, true), session)
        }
    }

    private func apply(
        _ update: ClientSignal.MetadataUpdate, _ session: SessionID, _ socket: some LiveKitSocket
    ) async {
        do throws(RoomError) {
            guard try await context.rooms.participant(session).permissions.canUpdateMetadata else {
                throw RoomError(.permissionDenied, "the token does not permit changing one's own metadata")
            }
            if !update.name.isEmpty || !update.metadata.isEmpty {
                try await context.rooms.perform(
                    .setMetadata(
                        name: update.name.isEmpty ? nil : update.name,
                        metadata: update.metadata.isEmpty ? nil : update.metadata), in: session)
            }
            if !update.attributes.isEmpty {
                try await context.rooms.perform(.setAttributes(update.attributes), in: session)
            }
            // Older clients know refusals only.
            if parameters.protocolVersion > 14 { socket.send(.response(requestID: update.requestID, nil, "")) }
        } catch {
            note(error)
            socket.send(
                .response(requestID: update.requestID, ServerSignal.Refusal(error.code), error.sentence))
        }
    }

    private func apply(
        _ update: ClientSignal.TrackUpdate, to sid: String, _ session: SessionID, _ socket: some LiveKitSocket
    ) async {
        guard let track = try? await context.rooms.ownTrack(sid, of: session) else {
            return socket.send(.response(requestID: 0, .notFound, "there is no such track"))
        }
        var announcement = TrackAnnouncement(track.clientTrackID ?? track.mid, source: track.source)
        announcement.sid = sid
        switch update {
        case .size(let width, let height):
            announcement.width = width
            announcement.height = height
        case .audioFeatures(let features):
            announcement.details = track.details
            announcement.details?.audioFeatures = features
        }
        await tolerating { () async throws(RoomError) in
            _ = try await context.rooms.announce(announcement, in: session)
        }
    }

    private func perform(_ request: SessionRequest, _ session: SessionID) async {
        await tolerating { () async throws(RoomError) in try await context.rooms.perform(request, in: session) }
    }

    /// The protocol has no reply to these requests: a failure is only logged.
    private func tolerating(_ body: () async throws(RoomError) -> Void) async {
        do throws(RoomError) { try await body() } catch { note(error) }
    }

    private func note(_ error: RoomError) {
        context.logger.debug("request refused", ["code": .text(error.code.rawValue)])
    }
}

extension ServerSignal.Refusal {
    init(_ code: RoomError.Code) {
        switch code {
        case .permissionDenied: self = .notAllowed
        case .limitExceeded, .tooLarge, .rateLimited: self = .limitExceeded
        case .trackNotFound, .participantNotFound, .sessionNotFound: self = .notFound
        case .invalidRequest: self = .invalidRequest
        default: self = .unclassified
        }
    }
}

extension ServerSignal.Refusal {
    /// The error for a data track, for which the protocol has its own codes. `mine`: the data tracks of its publisher.
    init(_ code: RoomError.Code, of track: DataTrackInfo, beside mine: [DataTrackInfo]) {
        switch code {
        case .tooLarge: self = .invalidName
        case .invalidRequest where track.handle == 0: self = .invalidHandle
        case .invalidRequest where mine.contains { $0.handle == track.handle }: self = .duplicateHandle
        case .invalidRequest where mine.contains { $0.name == track.name }: self = .duplicateName
        case .invalidRequest: self = .invalidName
        default: self.init(code)
        }
    }
}

extension TrackAnnouncement {
    init(_ request: TrackRequest) {
        self.init(request.clientID, source: request.source, name: request.name, muted: request.isMuted)
        kind = request.kind
        codecs = request.codecs
        if !request.backupClientID.isEmpty { backupTrackID = request.backupClientID }
        backupCodecPolicy = request.backupCodecPolicy
        if !request.sid.isEmpty { backupOf = request.sid }
        if request.width > 0 { width = request.width }
        if request.height > 0 { height = request.height }
        details = request.details
    }
}

extension TrackView {
    /// Sizes take precedence over the quality: a message without a quality looks like one with the lowest.
    init(_ settings: ClientSignal.TrackSettings) {
        self.init()
        isPaused = settings.isDisabled || settings.quality == 3
        if settings.height > 0 {
            preference = .height(min(settings.height, 16_384))
        } else if settings.quality < 2 {
            preference = .spatial(settings.quality)
        }
        // Of the numbers above 0, which means none, the lowest is the most important.
        switch settings.priority {
        case 0: break
        case 1: display.priority = .high
        case 2: display.priority = .standard
        default: display.priority = .low
        }
        if settings.framesPerSecond > 0 { display.framesPerSecond = Double(min(settings.framesPerSecond, 1_000)) }
    }
}
