public import MediaControl
public import Primitives

extension PublishedTrack {
    /// Appends all the ways to forward the track now, with their bitrates: simulcast layers that are being sent, or the spatial layers of
    /// the only stream, each with its temporal layers.
    public func appendOffers(at now: MonotonicTime, to offers: inout [LayerOffer]) {
        guard layerCount > 1 else { return appendScalableOffers(at: now, to: &offers) }
        let announced = self.announced
        let measured = measuredLayers(at: now)
        for index in 0..<layerCount where measured & 1 << UInt8(index) != 0 {
            let layer = self.layer(index)
            let frames = layer.pointee.frames.framesPerSecond(at: now)
            for temporal in 0..<LayerRates.temporalLayers
            where temporal == 0 || layer.pointee.rates.has(spatial: 0, temporal: temporal, at: now) {
                offers.append(
                    LayerOffer(
                        LayerPoint(spatial: rank(ofLayer: index), temporal: temporal),
                        bitrate: layer.pointee.rates.bitrate(
                            spatial: 0, temporal: temporal, announced: announced.bitsPerSecond(stream: index, upTo: 0),
                            at: now),
                        height: layer.pointee.size.height > 0
                            ? layer.pointee.size.height : announced.height(stream: index, spatial: 0) ?? 0,
                        framesPerSecond: frames * layer.pointee.rates.shareOfFrames(temporal: temporal, at: now)))
            }
        }
    }

    private func appendScalableOffers(at now: MonotonicTime, to offers: inout [LayerOffer]) {
        guard isActive(layer: 0, at: now) else { return }
        let rates = layer(0).pointee.rates
        let announced = self.announced
        let frames = layer(0).pointee.frames.framesPerSecond(at: now)
        let top = (0..<LayerRates.spatialLayers).last { rates.has(spatial: $0, temporal: 0, at: now) } ?? 0
        for spatial in 0...top {
            for temporal in 0..<LayerRates.temporalLayers
            where temporal == 0 || rates.has(spatial: spatial, temporal: temporal, at: now) {
                offers.append(
                    LayerOffer(
                        LayerPoint(spatial: spatial, temporal: temporal),
                        bitrate: rates.bitrate(
                            spatial: spatial, temporal: temporal,
                            announced: announced.bitsPerSecond(stream: 0, upTo: spatial), at: now),
                        // If not announced, spatial layers double in size (RFC 9628, AV1's modes of two and three).
                        height: announced.height(stream: 0, spatial: spatial)
                            ?? layer(0).pointee.size.height
                            >> max(layer(0).pointee.size.spatialLayers - 1 - spatial, 0),
                        framesPerSecond: frames * rates.shareOfFrames(temporal: temporal, at: now)))
            }
        }
    }
}
