import MediaControl
import Primitives
import Rooms

/// The quality of each participant's network in a room, as last announced.
struct QualityWatch {
    /// By participant sid.
    private var quality: [String: Int] = [:]
    /// Counters at the last sample, to compute loss rates: lost and received, by track sid.
    private var uplinkCounters: [String: (lost: UInt64, received: UInt64)] = [:]
    /// RTP packets that were sent to each connection, probes included, and for how many samples in a row the count has not changed.
    private var sent: [PeerID: (packets: UInt64, idleLooks: Int)] = [:]
    /// After this many samples (ten seconds) without packets, the last state of a path says nothing about its current one.
    private static let idleLooks = 2

    /// The participants whose quality has changed. `measured` is called for each connected participant, with its network and the loss on the way to it
    /// (nil: it receives nothing).
    mutating func look(
        at report: RoomReport, measured: (ParticipantReport, NetworkConditions, Double?) -> Void
    ) -> [ParticipantQuality] {
        var changed: [ParticipantQuality] = []
        var next: [String: Int] = [:]
        var counters: [String: (lost: UInt64, received: UInt64)] = [:]
        sent = packetsSent(in: report)
        for participant in report.participants where !participant.connections.isEmpty {
            var conditions = NetworkConditions(downlinkOf: withoutIdle(participant))
            let isSentTo = participant.connections.contains { !isIdle($0.statistics.peer) }
            let downlinkLoss = participant.subscriptions.isEmpty || !isSentTo ? nil : conditions.loss
            for track in participant.tracks {
                let lost = track.layers.reduce(0) { $0 &+ $1.packetsLost }
                let received = track.layers.reduce(0) { $0 &+ $1.packetsReceived }
                counters[track.info.sid] = (lost, received)
                if let before = uplinkCounters[track.info.sid], received >= before.received, lost >= before.lost {
                    let all = Double(lost - before.lost) + Double(received - before.received)
                    // A few packets do not make a rate.
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

    private func packetsSent(in report: RoomReport) -> [PeerID: (packets: UInt64, idleLooks: Int)] {
        var next: [PeerID: (packets: UInt64, idleLooks: Int)] = [:]
        for connection in report.participants.lazy.flatMap(\.connections) {
            let statistics = connection.statistics
            let before = sent[statistics.peer]
            let looks = before.map { $0.packets == statistics.rtpPacketsSent ? $0.idleLooks + 1 : 0 } ?? 0
            next[statistics.peer] = (statistics.rtpPacketsSent, looks)
        }
        return next
    }

    private func isIdle(_ peer: PeerID) -> Bool { sent[peer].map { $0.idleLooks >= Self.idleLooks } ?? false }

    /// Losses and queues are measured with sent packets: if nothing is sent, for example while everybody is muted, the last values would stay forever.
    private func withoutIdle(_ participant: ParticipantReport) -> ParticipantReport {
        var participant = participant
        for index in participant.connections.indices where isIdle(participant.connections[index].statistics.peer) {
            participant.connections[index].statistics.downlinkLoss = 0
            participant.connections[index].statistics.queueDelay = .zero
            participant.connections[index].statistics.isSilent = false
        }
        for index in participant.subscriptions.indices
        where participant.subscriptions[index].statistics.bitrate == .zero {
            participant.subscriptions[index].statistics.fractionLost = 0
        }
        return participant
    }
}
