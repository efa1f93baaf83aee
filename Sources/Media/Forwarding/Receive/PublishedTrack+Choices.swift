// The layers that a subscriber can select: simulcast streams, or the spatial layers inside the only stream. Rank 0 is the smallest.

extension PublishedTrack {
    /// Number of choices; for spatial layers the maximum that the stream ever had, because its publisher may have been asked to stop some.
    public var choiceCount: Int { layerCount > 1 ? layerCount : min(layer(0).pointee.size.mostSpatialLayers, 8) }

    /// Rank of the choice at `index`, which for simulcast is the stream's position in the description.
    public func rank(ofChoice index: Int) -> Int { layerCount > 1 ? rank(ofLayer: index) : index }

    /// Rank of the smallest choice that is at least `height` lines tall; nil if none is known to be.
    public func rank(reaching height: Int) -> Int? {
        LayerFit.rank(
            reaching: height, among: (0..<choiceCount).lazy.map { (self.rank(ofChoice: $0), self.height(ofChoice: $0)) }
        )
    }

    /// Rank of the stream that its publisher named `rid`; nil if there is none, and for layers inside a stream, which have no names.
    func rank(of rid: String) -> Int? {
        guard layerCount > 1 else { return nil }
        return (0..<layerCount).first { layer($0).pointee.sources.rid == rid }.map { rank(ofLayer: $0) }
    }

    /// Height in lines; 0 while unknown. For spatial layers, the size of the highest one is known, and each is twice as tall as the one below (RFC 9628; AV1's
    /// modes with two and three layers).
    private func height(ofChoice index: Int) -> Int {
        guard layerCount == 1 else { return layer(index).pointee.size.height }
        let above = index - (layer(0).pointee.size.spatialLayers - 1), highest = layer(0).pointee.size.height
        return above > 0 ? highest << above : highest >> -above
    }
}

/// Selects the smallest layer that is tall enough.
enum LayerFit {
    /// The lowest rank among layers that are at least `height` lines tall; nil if there is none.
    static func rank(reaching height: Int, among layers: some Sequence<(rank: Int, height: Int)>) -> Int? {
        var lowest: Int?
        for layer in layers where layer.height >= height { lowest = min(lowest ?? .max, layer.rank) }
        return lowest
    }
}
