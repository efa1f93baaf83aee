import Forwarding

extension Downlink {
    /// The subscription for padding: one that has an RTX stream for it, preferably one that is forwarding.
    func probeCarrier(
        in base: UnsafeMutablePointer<SubscriptionState>
    ) -> UnsafeMutablePointer<SubscriptionState>? {
        var best: (state: UnsafeMutablePointer<SubscriptionState>, rank: Int)?
        for state in subscriptions(in: base) {
            guard state.pointee.track >= 0, state.pointee.subscription.canProbe,
                state.pointee.subscription.usesTransportSequence
            else { continue }
            let isBeside = state.pointee.subscription.padsBeside
            let rank = (isBeside ? 2 : 0) + (state.pointee.subscription.layer != nil ? 1 : 0)
            if rank == 3 { return state }
            // Queued packets have their numbers already, and padding must not overtake them.
            if rank > best?.rank ?? -1, isBeside || !isWaiting { best = (state, rank) }
        }
        return best?.state
    }
}
