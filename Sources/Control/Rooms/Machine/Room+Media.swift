public import MediaControl
import Primitives

extension Room {
    /// Handles a worker's event. Events about objects that have already ended are ignored: they may cross a command.
    public mutating func receive(_ event: MediaEvent, turn: inout RoomTurn) {
        switch event {
        case .peerChecked(let peer): reach(.ice, state.roster.owner(of: peer)?.session, &turn)
        case .peerConnected(let peer):
            reach(.dtls, state.roster.owner(of: peer)?.session, &turn)
            peerChanged(peer, .connected, &turn)
        case .peerMoved(let peer): peerChanged(peer, .moved, &turn)
        case .peerEnded(let peer, let reason): peerEnded(peer, reason, &turn)
        case .trackStarted(let id, let codec):
            guard state.routing[id] != nil else { return }
            reach(.received, state.routing[id]?.publisher, &turn)
            state.routing.update(id) { $0.info.codec = codec }
            state.trackChanged(id, &turn)
            state.setFlowing(id, true, &turn)
            state.announceSubscribed(state.routing[id]?.main ?? id, &turn)
        case .trackSilent(let id): setSilent(id, true, &turn)
        case .trackResumed(let id): setSilent(id, false, &turn)
        case .trackDimensions(let id, let layer, let width, let height):
            reach(.receivedKeyframe, state.routing[id]?.publisher, &turn)
            setDimensions(id, layer: layer, width: width, height: height, &turn)
        case .layersWanted(let id, let flags): setWanted(id, flags, &turn)
        case .subscriptionStarted(let id):
            guard let subscription = state.routing[id] else { return }
            reach(.sent, subscription.member, &turn)
            if subscription.kind == .video { reach(.sentVideo, subscription.member, &turn) }
            let track = state.routing.track(of: subscription)?.info.sid
            state.roster.notify(
                subscription.member, .subscriptionStarted(subscription: subscription.sid, track: track), &turn)
            state.announceSubscribed(subscription.track, &turn)
        case .subscriptionHasNoCommonCodec(let id): hasNoCommonCodec(id, &turn)
        case .subscriptionHeld(let id, let isHeld): subscriptionHeld(id, isHeld, &turn)
        case .speakersChanged(_, let levels): setSpeakers(levels, &turn)
        case .dataChannelOpened(let peer, let terms): channelOpened(peer, terms.label)
        case .dataChannelClosed(let peer, let label, let reason): channelClosed(peer, label, reason, &turn)
        // The host of the room keeps what a peer sent, and decodes it before it calls `send`.
        case .peerMeasured, .dataReceived: break
        case .dominantSpeakerChanged(_, let track):
            distribution.setDominant(track.flatMap { state.routing[$0]?.publisher }, &state, &turn)
        }
        makeOffers(&turn)
    }

    /// Records that a stay reaches a step, the first time.
    mutating func reach(_ step: JoinStep, _ session: SessionID?, _ turn: inout RoomTurn) {
        guard let session, let member = state.roster[session], !member.stay.hasReached(step) else { return }
        state.roster.update(session) { $0.stay.reach(step) }
        turn.effects.append(.joinStep(participant: member.info.sid, step))
    }

    private mutating func peerChanged(_ peer: PeerID, _ reached: ConnectionState, _ turn: inout RoomTurn) {
        guard let owner = state.roster.owner(of: peer), let member = state.roster[owner.session] else { return }
        state.roster.updateConnection(owner.connection, of: owner.session) {
            $0.state = reached == .moved ? .connected : reached
        }
        state.connected(owner.session, &turn)
        state.roster.notify(
            owner.session, .connectionChanged(connection: owner.connection, state: reached, reason: nil), &turn)
        turn.log(
            .connectionChanged(
                participant: member.info.sid, connection: owner.connection, state: reached, reason: nil))
    }

    /// A WHIP or WHEP session ends with its only connection; a signalled member stays and is notified of the reason.
    private mutating func peerEnded(_ peer: PeerID, _ reason: PeerEndReason, _ turn: inout RoomTurn) {
        guard reason != .removed, let owner = state.roster.owner(of: peer), let member = state.roster[owner.session]
        else { return }
        if reason == .iceTimeout, let index = member.connectionIndex(owner.connection) {
            member.connections[index].logFailedICE(of: member.info.sid, &turn)
        }
        endConnection(owner.session, owner.connection, commandsWorker: false, reason: reason, &turn)
        state.roster.notify(
            owner.session, .connectionChanged(connection: owner.connection, state: .closed, reason: reason.rawValue),
            &turn)
        // Subscriptions on it are offered on another one. LiveKit's clients join anew, with all of their connections.
        if member.options.offering == .server { state.outdated.insert(owner.session) }
        if !member.options.isSignalled, state.roster[owner.session]?.connections.isEmpty == true {
            remove(owner.session, reason: reason == .closedByPeer ? .left : .connectionLost, turn: &turn)
        }
    }

    private mutating func setSilent(_ id: TrackID, _ silent: Bool, _ turn: inout RoomTurn) {
        state.setFlowing(id, !silent, &turn)
        // While nobody needs one of two encodings, its publisher may stop it.
        guard let track = state.routing[id], track.main == nil, track.info.silent != silent,
            track.backup == nil || !silent
        else { return }
        state.routing.update(id) { $0.info.silent = silent }
        state.trackChanged(id, &turn)
    }

    /// The size of the largest layer is that of the track.
    private mutating func setDimensions(
        _ id: TrackID, layer: Int, width: Int, height: Int, _ turn: inout RoomTurn
    ) {
        guard let track = state.routing[id], track.main == nil else { return }
        state.routing.update(id) { $0.layerSizes[layer] = RoomTrack.Size(width: width, height: height) }
        guard let largest = state.routing[id]?.layerSizes.values.max(by: { $0.area < $1.area }),
            track.info.width != largest.width || track.info.height != largest.height
        else { return }
        state.routing.update(id) { track in
            track.info.width = largest.width
            track.info.height = largest.height
        }
        state.trackChanged(id, &turn)
    }

    /// Notifies the publisher which layers are in demand. Whether it stops the others is its own decision.
    private mutating func setWanted(_ id: TrackID, _ flags: [Bool], _ turn: inout RoomTurn) {
        guard let track = state.routing[id] else { return }
        let encodings = track.description.encodings.isEmpty ? [EncodingDescription()] : track.description.encodings
        let isScalable = encodings.count == 1 && flags.count > 1
        let layers =
            isScalable
            ? flags.enumerated().map { WantedLayer(rid: encodings[0].rid, spatial: $0, isWanted: $1) }
            : zip(encodings, flags).map { WantedLayer(rid: $0.rid, isWanted: $1) }
        state.routing.update(id) { $0.wantedLayers = layers }
        guard let main = track.main, let codec = track.info.backupCodec else {
            guard !state.regressions.stopsFirstCodec(of: id) else { return }
            return state.roster.notify(track.publisher, .layersWanted(track: track.info.sid, layers: layers), &turn)
        }
        guard state.routing[main]?.wantsBackup == true else { return }
        state.roster.notify(
            track.publisher, .backupWanted(track: track.info.sid, codec: codec, layers: layers), &turn)
    }

    /// Checks whether the first codec of tracks that are sent in their backup codec is needed, too.
    mutating func reviewRegressions(_ turn: inout RoomTurn) {
        state.reviewRegressions(isRecorded: { recordings.stream(of: $0) != nil }, &turn)
    }

    /// The member and the log get the reason; a section that stays black does not explain itself.
    private mutating func hasNoCommonCodec(_ id: SubscriptionID, _ turn: inout RoomTurn) {
        guard let subscription = state.routing[id] else { return }
        let track = state.routing.track(of: subscription)?.info.sid
        turn.log(.noCommonCodec(participant: state.roster[subscription.member]?.info.sid ?? "", track: track))
        state.routing.update(id) { $0.state = .noCommonCodec }
        state.subscriptionChanged(id, &turn)
    }

    private mutating func subscriptionHeld(_ id: SubscriptionID, _ isHeld: Bool, _ turn: inout RoomTurn) {
        state.routing.update(id) { $0.isHeld = isHeld }
        state.announceHeld(id, &turn)
    }

    /// Announces changed network quality of members to everybody with a roster.
    public mutating func updateQuality(_ changed: [ParticipantQuality], turn: inout RoomTurn) {
        for one in changed {
            if let session = state.roster.session(sid: one.participant) {
                state.roster.update(session) { $0.info.quality = one.quality }
                turn.log(.qualityChanged(participant: one.participant, quality: one.quality))
            }
        }
        let visible = changed.filter { quality in
            state.roster.session(sid: quality.participant).map { state.roster[$0]?.isHidden == false } ?? false
        }
        if !visible.isEmpty { state.roster.notifyAll(.qualityChanged(visible), &turn) }
    }

    private mutating func setSpeakers(_ levels: [SpeakerLevel], _ turn: inout RoomTurn) {
        let speakers: [SpeakerInfo] = levels.compactMap { level in
            guard let track = state.routing[level.track], state.roster[track.publisher]?.isHidden == false else {
                return nil
            }
            return SpeakerInfo(participant: track.info.participant, track: track.info.sid, loudness: level.loudness)
        }
        state.announceSpeakers(speakers, &turn)
    }

    /// A channel of a member is open. A WHIP session has no other way to request messages.
    private mutating func channelOpened(_ peer: PeerID, _ label: String) {
        guard let owner = state.roster.owner(of: peer) else { return }
        state.roster.updateConnection(owner.connection, of: owner.session) { _ = $0.channels.insert(label) }
        if state.roster[owner.session]?.options.isSignalled == false {
            state.roster.update(owner.session) { $0.options.wantsMessages = true }
        }
    }

    /// A channel of a member is closed. A member that received messages too slowly gets none until it opens another channel, and is notified.
    private mutating func channelClosed(
        _ peer: PeerID, _ label: String, _ reason: DataChannelEnd, _ turn: inout RoomTurn
    ) {
        guard let owner = state.roster.owner(of: peer) else { return }
        state.roster.updateConnection(owner.connection, of: owner.session) { _ = $0.channels.remove(label) }
        guard reason == .receiverTooSlow else { return }
        state.roster.notify(
            owner.session, .channelClosed(connection: owner.connection, label: label, reason: reason.rawValue), &turn)
    }
}
