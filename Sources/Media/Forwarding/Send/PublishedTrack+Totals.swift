extension PublishedTrack {
    /// Packets and keyframes requested, all layers together: for a worker's counters.
    public var requestTotals: (nacks: UInt64, keyframeRequests: UInt64) {
        var totals = (nacks: UInt64(0), keyframeRequests: UInt64(0))
        for index in 0..<layerCount {
            totals.nacks &+= layer(index).pointee.totals.nacks
            totals.keyframeRequests &+= layer(index).pointee.totals.keyframeRequests
        }
        return totals
    }
}
