import MediaControl
import Primitives

/// The measurements of one participant's network, in both directions.
struct NetworkConditions: Sendable, Hashable {
    /// A transport is up.
    var isConnected = true
    /// Packets are sent to it, but no reports about them arrive.
    var isSilent = false
    /// The worse of the loss to it and from it, 0 to 1.
    var loss = 0.0
    var roundTrip: TimeSpan?
    /// How long packets to it wait on the way.
    var queueDelay = TimeSpan.zero
    /// The share of its demand that fits its path, 0 to 1; what a policy holds back is not demanded.
    var servedShare = 1.0

    /// The network quality from 0 to 5, as the common SDKs count: 5 excellent, 3 usable, 1 bad, 0 nothing arrives.
    ///
    /// The worst of its parts decides. Only the network counts: a quiet microphone, a 2 fps screen or a muted camera is not a
    /// bad network. Delay, a queue or a lack of bandwidth alone is never as bad as packets that do not arrive.
    var quality: Int {
        guard isConnected, !isSilent else { return 0 }
        let byLoss = loss < 0.01 ? 5 : loss < 0.03 ? 4 : loss < 0.08 ? 3 : loss < 0.2 ? 2 : 1
        let milliseconds = roundTrip?.milliseconds ?? 0
        let byWay = milliseconds < 250 ? 5 : milliseconds < 400 ? 4 : milliseconds < 700 ? 3 : 2
        let byQueue = queueDelay < .milliseconds(100) ? 5 : queueDelay < .milliseconds(250) ? 4 : 3
        let byShare = servedShare >= 0.9 ? 5 : servedShare >= 0.6 ? 4 : servedShare >= 0.3 ? 3 : 2
        return min(min(byLoss, byWay), min(byQueue, byShare))
    }
}

extension NetworkConditions {
    /// The measurements of a participant's transports; the worst of several.
    init(downlinkOf participant: ParticipantReport) {
        self.init()
        let peers = participant.connections.map(\.statistics)
        isConnected = peers.contains(where: \.isConnected)
        roundTrip = peers.compactMap(\.roundTripTime).max()
        for peer in peers where peer.isConnected {
            isSilent = isSilent || peer.isSilent
            loss = max(loss, peer.downlinkLoss)
            queueDelay = max(queueDelay, peer.queueDelay)
            guard peer.estimate != nil, let allocated = peer.allocated, let wanted = peer.wanted, wanted > .zero else {
                continue
            }
            let share = Double(allocated.bitsPerSecond) / Double(wanted.bitsPerSecond)
            servedShare = min(servedShare, share)
        }
        // Receiver reports describe single streams, in which one packet of a few may be a quarter: used only if there is nothing better.
        if !peers.contains(where: { $0.estimate != nil }) {
            loss = participant.subscriptions.reduce(loss) { max($0, $1.statistics.fractionLost) }
        }
    }
}
