import MediaControl
import MediaWorkers
import Primitives
public import Rooms

extension RoomService {
    /// One room's media statistics with names.
    public func report(onRoom name: String) async throws(RoomError) -> RoomReport {
        let hosted = try hosted(named: name)
        return Self.report(on: hosted.room, try await reported(.room(hosted.room.id), on: hosted.worker))
    }

    /// The last decisions about what one participant, named by sid or identity, is shown, and the estimates of its path; oldest first.
    public func decisions(about participant: String, in name: String) async throws(RoomError) -> DecisionsReport {
        let hosted = try hosted(named: name)
        guard let session = hosted.room.find(participant) else {
            throw counted(RoomError(.participantNotFound, "there is no such participant"))
        }
        let peers = hosted.room.connections(of: session).map(\.peer)
        let downlinks = try await reported(.downlinks(peers, withHistory: true), on: hosted.worker).downlinks
        let decisions = downlinks.flatMap(\.decisions).sorted { $0.time < $1.time }
        let estimates = downlinks.flatMap(\.estimates).sorted { $0.age > $1.age }
        let now = media.wallClockMilliseconds()
        return DecisionsReport(
            decisions: decisions.map { named($0, of: session, in: hosted.room) },
            estimates: estimates.map {
                EstimateReport(at: now - $0.age.milliseconds, least: $0.least, most: $0.most)
            })
    }

    /// How a participant's network and media did in the last hour, named by sid or identity; oldest first, one sample in 5 s.
    public func history(of participant: String, in name: String) throws(RoomError) -> [StaySample] {
        let hosted = try hosted(named: name)
        guard let info = hosted.room.find(participant).flatMap({ hosted.room.participant($0) }) else {
            throw counted(RoomError(.participantNotFound, "there is no such participant"))
        }
        return hosted.stays.samples(of: info.sid)
    }

    /// What one session is shown now, and why not more.
    public func allocation(of session: SessionID) async throws(RoomError) -> AllocationReport {
        let hosted = try hosted(of: session)
        let peers = hosted.room.connections(of: session).map(\.peer)
        var report = AllocationReport()
        for downlink in try await reported(.downlinks(peers, withHistory: false), on: hosted.worker).downlinks {
            // Of several receiving connections, the one that can carry least.
            report.estimate = [report.estimate, downlink.estimate].compactMap { $0 }.min()
            report.allocated = report.allocated + downlink.allocated
            report.wanted = report.wanted + downlink.wanted
            report.videos += downlink.videos.map { named($0, of: session, in: hosted.room) }
        }
        return report
    }

    /// What a worker reports; nothing on a room that it does not know.
    private func reported(_ scope: ReportScope, on worker: WorkerIndex) async throws(RoomError) -> MediaReport {
        do throws(WorkerHangs) {
            return try await media.report(scope, on: worker) ?? MediaReport()
        } catch {
            throw counted(.workerHangs)
        }
    }

    private func named(_ record: DecisionRecord, of session: SessionID, in room: Room) -> DecisionReport {
        DecisionReport(
            at: media.wallClockMilliseconds() - record.age.milliseconds,
            subscription: room.subscribed(record.subscription)?.info.sid,
            track: record.track.flatMap { room.published($0)?.info.sid }, record: record,
            limits: room.bandwidth(of: session))
    }

    static func report(on room: Room, _ statistics: MediaReport) -> RoomReport {
        var reports: [SessionID: ParticipantReport] = [:]
        for session in room.sessions {
            guard let info = room.participant(session) else { continue }
            reports[session] = ParticipantReport(
                sid: info.sid, identity: info.identity, connections: [], tracks: [], subscriptions: [])
        }
        for peer in statistics.peers {
            guard let owner = room.owner(of: peer.peer) else { continue }
            reports[owner.session]?.connections.append(ConnectionReport(id: owner.connection, statistics: peer))
        }
        for track in statistics.tracks {
            guard let (session, info) = room.published(track.track) else { continue }
            reports[session]?.tracks.append(TrackReport(info: info, statistics: track))
        }
        for subscription in statistics.subscriptions {
            guard let (session, info) = room.subscribed(subscription.subscription) else { continue }
            reports[session]?.subscriptions.append(SubscriptionReport(info: info, statistics: subscription))
        }
        return RoomReport(room: room.info, participants: room.sessions.compactMap { reports[$0] })
    }

    /// Totals and gauges.
    public func statistics() -> RoomServiceStatistics {
        var all = totals
        all.rooms = rooms.count
        all.isDraining = drain != nil || isEnding
        all.reservedConnections = reservedConnections
        all.maxConnections = configuration.maxConnections
        for hosted in rooms.values {
            let counts = hosted.room.counts
            all.participants += counts.participants
            all.publishers += counts.publishers
            all.tracks += counts.tracks
            all.subscriptions += counts.subscriptions
            all.connections += counts.connections
            all.detachedSessions += hosted.room.detachedCount
        }
        return all
    }
}
