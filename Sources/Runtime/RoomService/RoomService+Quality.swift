import MediaControl
import Primitives
import Rooms

// Network quality, 0 to 5 a participant, from what the worker measures.

extension RoomService {
    /// Looks at every room with somebody in it, keeps what it sees for an hour, and tells whose network changed.
    func measureQuality() async {
        for name in rooms.keys.sorted() {
            guard let hosted = rooms[name], hosted.room.counts.participants > 0 else { continue }
            trace(hosted)
            guard let statistics = try? await media.report(.room(hosted.room.id), on: hosted.worker) else { continue }
            let report = Self.report(on: hosted.room, statistics)
            let changed = Self.changes(of: hosted, report, at: media.wallClockMilliseconds(), into: &totals.network)
            if !changed.isEmpty { await step(hosted) { $0.updateQuality(changed, turn: &$1) } }
        }
    }

    private static func changes(
        of hosted: HostedRoom, _ report: RoomReport, at: Int64, into histograms: inout NetworkHistograms
    ) -> [ParticipantQuality] {
        var changed: [ParticipantQuality] = []
        var quality: [String: Int] = [:]
        var counters: [String: (lost: UInt64, received: UInt64)] = [:]
        for participant in report.participants where !participant.connections.isEmpty {
            var conditions = Self.downlink(of: participant)
            let downlinkLoss = participant.subscriptions.isEmpty ? nil : conditions.loss
            for track in participant.tracks {
                let lost = track.statistics.layers.reduce(0) { $0 &+ $1.packetsLost }
                let received = track.statistics.layers.reduce(0) { $0 &+ $1.packetsReceived }
                counters[track.info.sid] = (lost, received)
                if let before = hosted.uplinkCounters[track.info.sid], received >= before.received, lost >= before.lost
                {
                    let all = Double(lost - before.lost) + Double(received - before.received)
                    // One packet of a few is no rate.
                    if all > 20 { conditions.loss = max(conditions.loss, Double(lost - before.lost) / all) }
                }
            }
            hosted.stays.measure(participant, conditions, at: at)
            histograms.add(loss: downlinkLoss, conditions)
            let value = conditions.quality
            quality[participant.sid] = value
            if hosted.quality[participant.sid] != value {
                changed.append(ParticipantQuality(participant: participant.sid, quality: value))
            }
        }
        hosted.quality = quality
        hosted.uplinkCounters = counters
        return changed
    }

    /// What the transports of a participant say, the worst of several.
    static func downlink(of participant: ParticipantReport) -> NetworkConditions {
        var conditions = NetworkConditions()
        let peers = participant.connections.map(\.statistics)
        conditions.isConnected = peers.contains(where: \.isConnected)
        conditions.roundTrip = peers.compactMap(\.roundTripTime).max()
        for peer in peers where peer.isConnected {
            conditions.isSilent = conditions.isSilent || peer.isSilent
            conditions.loss = max(conditions.loss, peer.downlinkLoss)
            conditions.queueDelay = max(conditions.queueDelay, peer.queueDelay)
            guard peer.estimate != nil, let allocated = peer.allocated, let wanted = peer.wanted, wanted > .zero else {
                continue
            }
            let share = Double(allocated.bitsPerSecond) / Double(wanted.bitsPerSecond)
            conditions.servedShare = min(conditions.servedShare, share)
        }
        // Receiver reports speak for single streams, where one packet of a few may be a quarter: only where nothing better is there.
        if !peers.contains(where: { $0.estimate != nil }) {
            conditions.loss = participant.subscriptions.reduce(conditions.loss) { max($0, $1.statistics.fractionLost) }
        }
        return conditions
    }
}
