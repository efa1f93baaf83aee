import MediaControl
import Primitives
import Rooms

// Network quality, 0 to 5 a participant, from what the worker measures.

extension RoomService {
    /// Looks at every room with listeners and tells what changed.
    func measureQuality() async {
        for name in rooms.keys.sorted() {
            guard let hosted = rooms[name], hosted.room.hasRosterReaders else { continue }
            guard let statistics = await media.roomStatistics(hosted.room.id, on: hosted.worker) else { continue }
            let report = Self.report(on: hosted.room, statistics)
            let changed = Self.changes(of: hosted, report)
            if !changed.isEmpty { await step(hosted) { $0.tellQuality(changed, turn: &$1) } }
        }
    }

    private static func changes(of hosted: HostedRoom, _ report: RoomReport) -> [ParticipantQuality] {
        var changed: [ParticipantQuality] = []
        var quality: [String: Int] = [:]
        var counters: [String: (lost: UInt64, received: UInt64)] = [:]
        for participant in report.participants where !participant.connections.isEmpty {
            var loss = 0.0
            for track in participant.tracks {
                let lost = track.statistics.layers.reduce(0) { $0 &+ $1.packetsLost }
                let received = track.statistics.layers.reduce(0) { $0 &+ $1.packetsReceived }
                counters[track.info.sid] = (lost, received)
                if let before = hosted.uplinkCounters[track.info.sid], received >= before.received, lost >= before.lost
                {
                    let all = Double(lost - before.lost) + Double(received - before.received)
                    if all > 20 { loss = max(loss, Double(lost - before.lost) / all) }
                }
            }
            loss = participant.subscriptions.reduce(loss) { max($0, $1.statistics.fractionLost) }
            let isConnected = participant.connections.contains { $0.statistics.isConnected }
            let roundTrip = participant.connections.compactMap { $0.statistics.roundTripTime }.max()
            let value = isConnected ? score(loss: loss, roundTrip: roundTrip) : 0
            quality[participant.sid] = value
            if hosted.quality[participant.sid] != value {
                changed.append(ParticipantQuality(participant: participant.sid, quality: value))
            }
        }
        hosted.quality = quality
        hosted.uplinkCounters = counters
        return changed
    }

    /// Loss decides, a long way takes a point or two off; 0 is kept for "not connected".
    static func score(loss: Double, roundTrip: TimeInterval?) -> Int {
        let byLoss =
            switch loss {
            case ..<0.01: 5
            case ..<0.03: 4
            case ..<0.07: 3
            case ..<0.15: 2
            default: 1
            }
        let penalty =
            switch roundTrip?.milliseconds ?? 0 {
            case ..<300: 0
            case ..<600: 1
            default: 2
            }
        return max(1, byLoss - penalty)
    }
}
