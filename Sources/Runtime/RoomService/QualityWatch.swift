import MediaControl
import Rooms

/// The quality of each participant's network in a room, as last told.
struct QualityWatch {
    /// By participant sid.
    private var quality: [String: Int] = [:]
    /// Counters of the last look, for rates of loss: lost and received, by track sid.
    private var uplinkCounters: [String: (lost: UInt64, received: UInt64)] = [:]

    /// Whose quality is another than before. `measured` is called for each participant that is connected, with its network and what is lost on the way to it
    /// (nil: it receives nothing).
    mutating func look(
        at report: RoomReport, measured: (ParticipantReport, NetworkConditions, Double?) -> Void
    ) -> [ParticipantQuality] {
        var changed: [ParticipantQuality] = []
        var next: [String: Int] = [:]
        var counters: [String: (lost: UInt64, received: UInt64)] = [:]
        for participant in report.participants where !participant.connections.isEmpty {
            var conditions = NetworkConditions(downlinkOf: participant)
            let downlinkLoss = participant.subscriptions.isEmpty ? nil : conditions.loss
            for track in participant.tracks {
                let lost = track.layers.reduce(0) { $0 &+ $1.packetsLost }
                let received = track.layers.reduce(0) { $0 &+ $1.packetsReceived }
                counters[track.info.sid] = (lost, received)
                if let before = uplinkCounters[track.info.sid], received >= before.received, lost >= before.lost {
                    let all = Double(lost - before.lost) + Double(received - before.received)
                    // One packet of a few is no rate.
                    if all > 20 { conditions.loss = max(conditions.loss, Double(lost - before.lost) / all) }
                }
            }
            measured(participant, conditions, downlinkLoss)
            let value = conditions.quality
            next[participant.sid] = value
            if quality[participant.sid] != value {
                changed.append(ParticipantQuality(participant: participant.sid, quality: value))
            }
        }
        quality = next
        uplinkCounters = counters
        return changed
    }
}
