public import MediaControl
public import Primitives

extension PublishedTrack {
    /// The track's statistics at one moment. Layers are in the order of the description.
    public func statistics(at now: MonotonicTime) -> TrackStatistics {
        var statistics = TrackStatistics(track: description.id, kind: description.kind)
        statistics.codec = format?.codec
        statistics.isMuted = isMuted
        statistics.isSilent = isSilent
        statistics.loudness = levels.currentLoudness
        for index in 0..<layerCount {
            statistics.layers.append(layerStatistics(index, at: now))
            statistics.historyBytes += layer(index).pointee.history.memoryBytes
        }
        return statistics
    }

    private func layerStatistics(_ index: Int, at now: MonotonicTime) -> LayerStatistics {
        let layer = self.layer(index)
        var statistics = LayerStatistics()
        statistics.rid = layer.pointee.sources.rid
        statistics.ssrc = layer.pointee.sources.ssrc ?? 0
        statistics.packetsReceived = layer.pointee.totals.packets
        statistics.bytesReceived = layer.pointee.totals.bytes
        statistics.packetsLost = layer.pointee.unrepaired
        statistics.packetsRepaired = layer.pointee.totals.repaired
        statistics.nacksSent = layer.pointee.totals.nacks
        statistics.keyframeRequestsSent = layer.pointee.totals.keyframeRequests
        statistics.keyframesReceived = layer.pointee.totals.keyframes
        statistics.framesReceived = layer.pointee.frames.count
        statistics.bitrate = layer.pointee.bitrate(at: now)
        statistics.framesPerSecond = layer.pointee.frames.framesPerSecond(at: now)
        statistics.width = layer.pointee.size.width
        statistics.height = layer.pointee.size.height
        statistics.jitterMilliseconds = milliseconds(ofTicks: Double(layer.pointee.reception.jitter))
        statistics.isActive = isActive(layer: index, at: now)
        return statistics
    }

    /// The duration of this many ticks of the track's clock.
    public func milliseconds(ofTicks ticks: Double) -> Double {
        ticks * 1_000 / max(format.map { Double($0.clockRateHz) } ?? 90_000, 1)
    }

    /// Width and height in pixels of the video that is sent when a stream's spatial layers are forwarded up to `spatial`; 0 while unknown.
    public func sizeSent(ofLayer index: Int, upTo spatial: Int) -> (width: Int, height: Int) {
        let size = layer(index).pointee.size
        // Spatial layers double in size (RFC 9628, AV1's modes of two and three).
        let left = max(size.spatialLayers - 1 - spatial, 0)
        return (size.width >> left, size.height >> left)
    }

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
