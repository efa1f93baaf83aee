import MediaControl
import Primitives

// What holds for a member's bandwidth: how its receiving connections share it out, and what its video tracks may send.

extension Room {
    /// The tightest of the room's, the token's and the member's own limits.
    func settings(of member: Member) -> BandwidthSettings { settings(of: member, in: policy) }

    func settings(of member: Member, in policy: RoomPolicy) -> BandwidthSettings {
        BandwidthSettings(room: policy.bandwidth, token: member.options.grantedBandwidth, own: member.options.bandwidth)
    }

    /// What holds for one session's bandwidth.
    public func bandwidth(of session: SessionID) -> BandwidthSettings? { roster[session].map(settings(of:)) }

    /// The member changed its mind about its bandwidth.
    mutating func setBandwidth(_ profile: BandwidthProfile, of session: SessionID, _ turn: inout RoomTurn) {
        guard let old = roster[session], old.options.bandwidth != profile else { return }
        roster.update(session) { $0.options.bandwidth = profile }
        bandwidthChanged(of: session, settings(of: old), &turn)
    }

    /// Other limits hold for the member than those `before`.
    mutating func bandwidthChanged(of session: SessionID, _ before: BandwidthSettings, _ turn: inout RoomTurn) {
        guard let member = roster[session] else { return }
        let settings = settings(of: member)
        for var connection in member.connections where connection.isOpened {
            commandPolicy(settings.downlinkPolicy, to: &connection, member, &turn)
            roster.store(connection, of: session)
        }
        capTracks(of: session, &turn)
        if settings.maxVideoSubscriptions?.value == 0 {
            endVideo(of: member, &turn)
        } else if before.maxVideoSubscriptions?.value == 0 {
            subscribeToAll(session, quietly: false, &turn)
        }
    }

    /// Commands how a connection's bandwidth is shared out, where that is news to the worker.
    func commandPolicy(
        _ downlink: DownlinkPolicy, to connection: inout Connection, _ member: Member, _ turn: inout RoomTurn
    ) {
        guard member.profile != .publishOnly, connection.downlinkPolicy != downlink else { return }
        connection.downlinkPolicy = downlink
        turn.media(.setDownlinkPolicy(connection.peer, downlink))
    }

    /// Commands what each video of a member may send: the room's cap of one track, and an even part of the cap on all. Muted
    /// tracks leave their part to the others.
    mutating func capTracks(of session: SessionID, _ turn: inout RoomTurn) {
        guard let member = roster[session] else { return }
        let videos = routing.tracks(of: member.session).filter { routing[$0]?.info.kind == .video }
        let sending = videos.count { routing[$0]?.info.muted == false }
        let part = settings(of: member).maxUplinkBitrate.map { limit in
            Bitrate.bitsPerSecond(max(limit.value.bitsPerSecond / Int64(max(sending, 1)), Self.leastCap))
        }
        for id in videos {
            let cap = [policy.maxVideoBitrate, part].compactMap { $0 }.min()
            guard routing[id]?.description.maximumBitrate != cap else { continue }
            routing.update(id) { $0.description.maximumBitrate = cap }
            turn.media(.setTrackMaximumBitrate(id, cap))
        }
    }

    /// Below this a sender can only stop, which is what muting is for.
    private static let leastCap: Int64 = 30_000

    /// The cap that stands in descriptions. The member's own preference is not in it: it may be taken back without a new description.
    func negotiatedCap(of member: Member) -> Bitrate? {
        let uplink = BandwidthSettings(
            room: policy.bandwidth, token: member.options.grantedBandwidth, own: BandwidthProfile()
        ).maxUplinkBitrate?.value
        return [policy.maxVideoBitrate, uplink].compactMap { $0 }.min()
    }

    /// No video from now on; sections that follow somebody stay and are sent nothing.
    mutating func endVideo(of member: Member, _ turn: inout RoomTurn) {
        for id in routing.subscriptions(of: member.session) {
            guard let subscription = routing[id], subscription.kind == .video, subscription.slot == nil else {
                continue
            }
            endSubscription(id, notifies: true, &turn)
        }
    }
}
