import MediaControl
import Primitives
import Rooms

/// What is remembered of the stays of one room's participants while they last: the last hour of samples, and what the summary will say.
struct StayLog {
    /// Samples of one participant: an hour of one in 5 s. With 48 bytes each, 35 kB for those who stay for so long.
    static let maxSamples = 720
    /// Tracks in one summary: who publishes and unpublishes all the time does not fill the memory.
    static let maxTracks = 64

    /// After so many milliseconds a join is traced with the steps that it has reached: who is not there by then has given up.
    static let traceAfter: Int64 = 15_000

    private struct Stay {
        /// As it joined.
        let info: ParticipantInfo
        var origin: JoinOrigin?
        var isTraced = false
        var tracks: [(sid: String, track: StaySummary.Track)] = []
        var joinedAt: Int64
        var connectedAt: Int64?
        /// Milliseconds from the join until each step was reached.
        var steps: [JoinStep: Int64] = [:]
        /// What each connection had carried when it was last looked at, by its name, and those that have ended.
        var carried: [String: (received: UInt64, sent: UInt64)] = [:]
        var ended: (received: UInt64, sent: UInt64) = (0, 0)
        /// What its connections had carried when it was moved here, which another stay's summary has.
        var brought: (received: UInt64, sent: UInt64) = (0, 0)
        /// Oldest first, from `head` on.
        var samples: [StaySample] = []
        var head = 0
        var lastSample: Int64
        var measured = 0
        var qualitySum = 0
        var worstQuality: Int?
        /// As its client reports them.
        var freezes: Freezes?
    }

    /// By participant sid.
    private var stays: [String: Stay] = [:]

    /// What an event means for somebody's stay.
    enum Change: Hashable {
        /// Its first peer connection is up.
        case connected(afterMilliseconds: Int64)
        case ended(StaySummary)
    }

    /// What happened at a moment (milliseconds since 1970), and what that means for a stay.
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
        case .connectionChanged(let participant, let connection, .closed, _):
            guard let last = stays[participant]?.carried.removeValue(forKey: connection) else { return nil }
            stays[participant]?.ended.received += last.received
            stays[participant]?.ended.sent += last.sent
        case .participantLeft(let info, let reason, _):
            guard let stay = stays.removeValue(forKey: info.sid) else { return nil }
            return .ended(summary(stay, info, reason, at, room, roomSID))
        default: break
        }
        return nil
    }

    /// A stay has reached a step: how many milliseconds after its join; nil where there is no such stay.
    mutating func reach(_ step: JoinStep, by participant: String, at: Int64) -> Int64? {
        guard let joinedAt = stays[participant]?.joinedAt else { return nil }
        stays[participant]?.steps[step] = at - joinedAt
        return at - joinedAt
    }

    /// What each connection of a participant has carried, by its name.
    func carried(by participant: String) -> [String: (received: UInt64, sent: UInt64)] {
        stays[participant]?.carried ?? [:]
    }

    /// The participant came from another room, with connections that are up and have carried so much: its join is not traced, and that is not counted again.
    mutating func goOn(_ participant: String, with carried: [String: (received: UInt64, sent: UInt64)]) {
        guard let joinedAt = stays[participant]?.joinedAt else { return }
        stays[participant]?.isTraced = true
        stays[participant]?.connectedAt = joinedAt
        stays[participant]?.carried = carried
        for connection in carried.values {
            stays[participant]?.brought.received += connection.received
            stays[participant]?.brought.sent += connection.sent
        }
    }

    /// The request that brought a participant's token.
    mutating func setOrigin(_ origin: JoinOrigin?, of participant: String) { stays[participant]?.origin = origin }

    /// The traces of joins that are old enough, each once, and with `leaving` also that of a participant who leaves now.
    mutating func takeTraces(at: Int64, room: String, leaving: String? = nil) -> [JoinTrace] {
        var traces: [JoinTrace] = []
        let due = stays.filter { sid, stay in
            !stay.isTraced && (sid == leaving || stay.joinedAt + Self.traceAfter <= at)
        }
        for (sid, stay) in due.sorted(by: { $0.key < $1.key }) {
            stays[sid]?.isTraced = true
            traces.append(
                JoinTrace(
                    room: room, participant: sid, profile: stay.info.profile, client: stay.info.client,
                    joinedAt: stay.joinedAt, origin: stay.origin, steps: stay.steps, outcome: .joined))
        }
        return traces
    }

    /// A participant's client has reported so many more freezes.
    mutating func add(_ freezes: Freezes, of participant: String) {
        guard let before = stays[participant] else { return }
        stays[participant]?.freezes = (before.freezes ?? Freezes()) + freezes
    }

    private func summary(
        _ stay: Stay, _ info: ParticipantInfo, _ reason: LeaveReason, _ at: Int64, _ room: String, _ roomSID: String
    ) -> StaySummary {
        var carried = stay.ended
        for connection in stay.carried.values {
            carried.received += connection.received
            carried.sent += connection.sent
        }
        carried.received -= min(stay.brought.received, carried.received)
        carried.sent -= min(stay.brought.sent, carried.sent)
        return StaySummary(
            room: room, roomSID: roomSID, info: info, leftAt: at, reason: reason,
            connectedAfterMilliseconds: stay.connectedAt.map { $0 - stay.joinedAt }, steps: stay.steps,
            tracks: stay.tracks.map(\.track),
            bytesReceived: carried.received, bytesSent: carried.sent,
            averageQuality: stay.measured > 0 ? Double(stay.qualitySum) / Double(stay.measured) : nil,
            worstQuality: stay.worstQuality, freezes: stay.freezes, tokenVerification: stay.origin?.verification)
    }

    /// Adds a sample of a participant's report and of what was found of its network.
    mutating func measure(_ report: ParticipantReport, _ conditions: NetworkConditions, at: Int64) {
        guard var stay = stays.removeValue(forKey: report.sid) else { return }
        var delta: (received: UInt64, sent: UInt64) = (0, 0)
        for connection in report.connections {
            let (received, sent) = (connection.statistics.bytesReceived, connection.statistics.bytesSent)
            let before = stay.carried[connection.id] ?? (0, 0)
            // A connection that was made anew under the same name begins at zero.
            if received < before.received || sent < before.sent {
                stay.ended.received += before.received
                stay.ended.sent += before.sent
            }
            delta.received += received >= before.received ? received - before.received : received
            delta.sent += sent >= before.sent ? sent - before.sent : sent
            stay.carried[connection.id] = (received, sent)
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
        if stay.samples.count - stay.head > Self.maxSamples { stay.head += 1 }
        if stay.head > Self.maxSamples {
            stay.samples.removeFirst(stay.head)
            stay.head = 0
        }
        stay.lastSample = at
        stay.measured += 1
        stay.qualitySum += quality
        stay.worstQuality = min(stay.worstQuality ?? quality, quality)
        stays[report.sid] = stay
    }

    /// The samples of a participant, oldest first.
    func samples(of participant: String) -> [StaySample] {
        stays[participant].map { Array($0.samples[$0.head...]) } ?? []
    }
}
