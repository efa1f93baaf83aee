import MediaControl
import Primitives
import Rooms

/// Data about the current stays of one room's participants: the last hour of samples, and the data for the summary.
struct StayLog {
    /// Samples of one participant: an hour of one in 5 s. With 56 bytes each, 40 kB for a stay of that length.
    static let maxSamples = 720
    /// Tracks in one summary: a participant that publishes and unpublishes all the time must not fill the memory.
    static let maxTracks = 64

    /// Decisions of one stay that are kept: as many as a connection has.
    static let maxDecisions = 64
    /// Estimates of one stay that are kept: an hour of one in 20 s.
    static let maxEstimates = 180

    /// After this many milliseconds a join is traced with the steps that it has reached: a client that has not connected by then has given up.
    static let traceAfter: Int64 = 15_000

    /// The state of a join's trace. Until the join is granted there is no trace: a description that is refused ends a very short stay, and that
    /// join is traced as refused. Stays without a join are not traced: a playback, and a client that was moved to another worker.
    private enum Tracing { case notGranted, due, done }

    private struct Stay {
        /// The participant as it joined.
        let info: ParticipantInfo
        var origin: JoinOrigin?
        var tracing = Tracing.notGranted
        var tracks: [(sid: String, track: StaySummary.Track)] = []
        var joinedAt: Int64
        var connectedAt: Int64?
        /// Milliseconds from the join until each step was reached.
        var steps: [JoinStep: Int64] = [:]
        /// The traffic of each open connection at the last sample, and (`ended`) of all that have ended.
        var carried: [PeerID: CarriedBytes] = [:]
        var ended = CarriedBytes()
        /// The traffic of its connections when it was moved here, which another stay's summary includes.
        var brought = CarriedBytes()
        /// Of connections that have ended.
        var decisions: [DecisionReport] = []
        var estimates: [EstimateReport] = []
        var samples = RecentValues<StaySample>(capacity: StayLog.maxSamples)
        var seenDecisions = SeenDecisions()
        var lastSample: Int64
        var measured = 0
        var qualitySum = 0
        var worstQuality: Int?
        /// As its client reports them.
        var freezes: Freezes?
    }

    /// By participant sid.
    private var stays: [String: Stay] = [:]
    /// The participant of each connection.
    private var owners: [PeerID: String] = [:]

    /// The effect of an event on a stay.
    enum Change: Hashable {
        /// Its first peer connection is up.
        case connected(afterMilliseconds: Int64)
        case ended(EndedStay)
    }

    /// Processes an event at a time (milliseconds since 1970), and returns its effect on a stay.
    mutating func note(_ event: RoomLogEvent, at: Int64, room: String, roomSID: String) -> Change? {
        switch event {
        case .participantJoined(let info): stays[info.sid] = Stay(info: info, joinedAt: at, lastSample: at)
        case .trackPublished(let info):
            guard stays[info.participant]?.tracks.count ?? Self.maxTracks < Self.maxTracks else { return nil }
            let track = StaySummary.Track(
                kind: info.kind, source: info.source, codec: info.codec, publishedAt: at, unpublishedAt: at)
            stays[info.participant]?.tracks.append((info.sid, track))
        case .trackUnpublished(let info):
            guard let index = stays[info.participant]?.tracks.lastIndex(where: { $0.sid == info.sid }) else {
                return nil
            }
            stays[info.participant]?.tracks[index].track.codec = info.codec
            stays[info.participant]?.tracks[index].track.unpublishedAt = at
        case .connectionChanged(let participant, _, .connected, _):
            guard let stay = stays[participant], stay.connectedAt == nil else { return nil }
            stays[participant]?.connectedAt = at
            return .connected(afterMilliseconds: at - stay.joinedAt)
        case .participantLeft(let info, let reason, _, let keepsConnections):
            guard let stay = stays.removeValue(forKey: info.sid) else { return nil }
            for peer in stay.carried.keys { owners[peer] = nil }
            return .ended(
                EndedStay(
                    summary(stay, info, reason, at, room, roomSID), missing: keepsConnections ? [:] : stay.carried))
        default: break
        }
        return nil
    }

    /// A stay has reached a step: returns how many milliseconds after its join; nil if there is no such stay.
    mutating func reach(_ step: JoinStep, by participant: String, at: Int64) -> Int64? {
        guard let joinedAt = stays[participant]?.joinedAt else { return nil }
        stays[participant]?.steps[step] = at - joinedAt
        return at - joinedAt
    }

    /// The traffic of each connection of a participant.
    func carried(by participant: String) -> [PeerID: CarriedBytes] { stays[participant]?.carried ?? [:] }

    /// When that was measured, milliseconds since 1970; nil: it is not here.
    func lastSample(of participant: String) -> Int64? { stays[participant]?.lastSample }

    /// The participant has another connection.
    mutating func add(_ peer: PeerID, of participant: String) {
        guard stays[participant] != nil else { return }
        owners[peer] = participant
        stays[participant]?.carried[peer] = CarriedBytes()
    }

    /// A connection of a current stay has ended; false: it belongs to none. `names` has the tracks' sids.
    mutating func finish(_ peer: PeerID, _ last: EndedPeer, at: Int64, names: TrackNames) -> Bool {
        guard let participant = owners.removeValue(forKey: peer), var stay = stays.removeValue(forKey: participant)
        else { return false }
        stay.carried[peer] = nil
        stay.ended += CarriedBytes(last)
        // Connections overlap: one that ends later may have older decisions.
        stay.decisions = Self.latest(
            (stay.decisions + last.decisionReports(at: at, names)).sorted { $0.at < $1.at }, Self.maxDecisions)
        stay.estimates = Self.latest(
            (stay.estimates + last.estimateReports(at: at)).sorted { $0.at < $1.at }, Self.maxEstimates)
        stays[participant] = stay
        return true
    }

    /// The participant came from another room, with connections that are up and had this traffic at `lastSample`: its join is not traced, and the traffic is
    /// not counted again.
    mutating func goOn(_ participant: String, with carried: [PeerID: CarriedBytes], since lastSample: Int64?) {
        guard let joinedAt = stays[participant]?.joinedAt else { return }
        stays[participant]?.tracing = .done
        stays[participant]?.connectedAt = joinedAt
        stays[participant]?.carried = carried
        if let lastSample { stays[participant]?.lastSample = lastSample }
        stays[participant]?.brought = carried.values.reduce(CarriedBytes(), +)
        for peer in carried.keys { owners[peer] = participant }
    }

    /// A participant's join was granted; `origin` is the request that carried its token.
    mutating func grantJoin(_ origin: JoinOrigin?, of participant: String) {
        stays[participant]?.origin = origin
        if stays[participant]?.tracing == .notGranted { stays[participant]?.tracing = .due }
    }

    /// The traces of joins that are old enough, each once, and, with `leaving`, also that of a participant that leaves now.
    mutating func consumeTraces(at: Int64, room: String, leaving: String? = nil) -> [JoinTrace] {
        var traces: [JoinTrace] = []
        let due = stays.filter { sid, stay in
            stay.tracing == .due && (sid == leaving || stay.joinedAt + Self.traceAfter <= at)
        }
        for (sid, stay) in due.sorted(by: { $0.key < $1.key }) {
            stays[sid]?.tracing = .done
            traces.append(
                JoinTrace(
                    room: room, participant: sid, profile: stay.info.profile, client: stay.info.client,
                    joinedAt: stay.joinedAt, origin: stay.origin, steps: stay.steps, outcome: .joined))
        }
        return traces
    }

    /// A participant's client has reported this many more freezes.
    mutating func add(_ freezes: Freezes, of participant: String) {
        guard let before = stays[participant] else { return }
        stays[participant]?.freezes = (before.freezes ?? Freezes()) + freezes
    }

    private func summary(
        _ stay: Stay, _ info: ParticipantInfo, _ reason: LeaveReason, _ at: Int64, _ room: String, _ roomSID: String
    ) -> StaySummary {
        let carried = (stay.carried.values.reduce(stay.ended, +)).beyond(stay.brought)
        var summary = StaySummary(
            room: room, roomSID: roomSID, info: info, leftAt: at, reason: reason,
            connectedAfterMilliseconds: stay.connectedAt.map { $0 - stay.joinedAt }, steps: stay.steps,
            tracks: stay.tracks.map(\.track),
            bytesReceived: carried.received, bytesSent: carried.sent,
            averageQuality: stay.measured > 0 ? Double(stay.qualitySum) / Double(stay.measured) : nil,
            worstQuality: stay.worstQuality, freezes: stay.freezes, tokenVerification: stay.origin?.verification)
        summary.history.samples = stay.samples.all
        (summary.history.decisions, summary.history.estimates) = (stay.decisions, stay.estimates)
        summary.history.seenDecisions = stay.seenDecisions.thinned.map {
            DecisionReport(at: $0.at, subscription: nil, track: $0.track, record: $0.record)
        }
        return summary
    }

    /// The last `count` of a sorted list.
    static func latest<Element>(_ all: [Element], _ count: Int) -> [Element] { Array(all.suffix(count)) }

    /// Adds a sample from a participant's report and its network's measurements.
    mutating func measure(_ report: ParticipantReport, _ conditions: NetworkConditions, at: Int64) {
        guard var stay = stays.removeValue(forKey: report.sid) else { return }
        var delta = CarriedBytes()
        for connection in report.connections {
            let now = CarriedBytes(connection.statistics), peer = connection.statistics.peer
            delta += now.beyond(stay.carried[peer] ?? CarriedBytes())
            stay.carried[peer] = now
            owners[peer] = report.sid
        }
        let interval = UInt64(max(at - stay.lastSample, 1))
        let quality = conditions.quality
        let uplink = Bitrate.bitsPerSecond(Int64(delta.received * 8_000 / interval))
        let downlink = Bitrate.bitsPerSecond(Int64(delta.sent * 8_000 / interval))
        let roundTrip = conditions.roundTrip.map { Int($0.milliseconds) }
        stay.samples.append(
            StaySample(
                at: at, uplink: uplink, downlink: downlink, loss: conditions.loss, roundTripMilliseconds: roundTrip,
                quality: quality))
        stay.seenDecisions.add(report, at: at)
        stay.lastSample = at
        stay.measured += 1
        stay.qualitySum += quality
        stay.worstQuality = min(stay.worstQuality ?? quality, quality)
        stays[report.sid] = stay
    }

    /// The samples of a participant, oldest first.
    func samples(of participant: String) -> [StaySample] {
        stays[participant]?.samples.all ?? []
    }

    /// The sampled decisions about a participant's videos, oldest first.
    func seenDecisions(of participant: String) -> [SeenDecision] {
        stays[participant]?.seenDecisions.all ?? []
    }
}
