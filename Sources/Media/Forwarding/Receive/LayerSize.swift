internal import PayloadFormats

/// The size of a layer's frames, and the spatial layers inside its stream, according to the last keyframe.
struct LayerSize {
    /// 0 while unknown.
    private(set) var width = 0
    private(set) var height = 0
    private(set) var spatialLayers = 1
    /// The maximum that the stream ever had.
    private(set) var mostSpatialLayers = 1

    /// Stores what a keyframe announces; true when it changed. `announced`: its spatial layers, 0 if it names none.
    mutating func note(_ dimensions: FrameDimensions?, spatialLayers announced: UInt8) -> Bool {
        let isOther = announced > 0 && Int(announced) != spatialLayers
        if isOther {
            spatialLayers = Int(announced)
            mostSpatialLayers = max(mostSpatialLayers, spatialLayers)
        }
        return note(dimensions) || isOther && width > 0
    }

    private mutating func note(_ dimensions: FrameDimensions?) -> Bool {
        guard let dimensions, dimensions.width != width || dimensions.height != height else { return false }
        width = dimensions.width
        height = dimensions.height
        return true
    }
}
