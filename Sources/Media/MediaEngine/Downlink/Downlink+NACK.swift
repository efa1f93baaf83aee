import Forwarding
import MediaControl
import Primitives
import RTP

extension Downlink {
    /// Looks up the packets that a NACK for the subscription `index` requests, as far as the peer's budget allows. Retransmissions leave at the end of the turn
    /// (`writeRepeat`).
    mutating func receive(
        _ nack: GenericNACK, in datagram: RawSpan, for index: Int, _ tables: borrowing Tables, roundTrip: TimeSpan,
        at now: MonotonicTime, into turn: inout Turn, _ counters: inout WorkerStatistics
    ) {
        let state = tables.subscriptions[index]
        let track = state.pointee.track < 0 ? nil : tables.tracks[state.pointee.track].pointee.track
        for position in 0..<nack.count {
            let entry = nack.entry(at: position, in: datagram)
            counters.nacksReceived &+= UInt64(entry.packetCount)
            guard mayLookUp(entry.packetCount) else {
                counters.drops[.retransmissionThrottled] &+= UInt64(entry.packetCount)
                continue
            }
            for number in entry {
                switch state.pointee.subscription.requestRepeat(number, of: track, roundTrip: roundTrip, at: now) {
                case .send(let sequence): turn.addRepeat(of: sequence, to: index)
                case .gone: counters.drops.count(.retransmissionTooOld)
                case .dropped(let reason): counters.drops.count(reason)
                case .notYetHere: break
                }
            }
        }
    }
}
