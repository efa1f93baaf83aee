/// Which frames a picture (RFC 9628: all layer frames of one time) has, and what each refers to: libwebrtc's patterns (L1T1 to L3T3 and their KEY modes).
///
/// ```text
/// temporal   0  2  1  2  0      a frame refers to the newest one of its spatial layer in a lower temporal layer,
///            |<-+     |  |      in the lowest to the one before in the same
///            |<----+<-+  |
///            |<----------+
/// spatial    a frame refers to the one below in keyframes, and without KEY in every picture
/// ```
struct LayerPattern: Sendable {
    /// One layer's frame of a picture.
    struct Frame: Sendable {
        var spatial: Int
        var temporal: Int
        var isKey: Bool
        /// Counts the frames of all layers.
        var number: UInt32
        /// The frame below, of the same picture.
        var refersDown: Bool
        /// How many pictures back; nil if it refers to no earlier one.
        var distance: Int?
    }

    let spatialLayers: Int
    let temporalLayers: Int
    let refersUpInKeyframesOnly: Bool
    private var picture = 0
    private var position = 0
    /// The newest picture of each temporal layer since the last keyframe.
    private var newest: [Int?]

    init(spatialLayers: Int, temporalLayers: Int, refersUpInKeyframesOnly: Bool) {
        self.spatialLayers = spatialLayers
        self.temporalLayers = temporalLayers
        self.refersUpInKeyframesOnly = refersUpInKeyframesOnly
        newest = Array(repeating: nil, count: temporalLayers)
    }

    /// The frames of the next picture, the lowest spatial layer first.
    mutating func next(isKey: Bool) -> [Frame] {
        picture += 1
        if isKey {
            position = 0
            newest = Array(repeating: nil, count: temporalLayers)
        }
        let temporal = Self.temporalLayer(at: position, of: temporalLayers)
        position += 1
        let reference = isKey ? nil : newest[...max(temporal - 1, 0)].compactMap { $0 }.max()
        newest[temporal] = picture
        return (0..<spatialLayers).map { spatial in
            Frame(
                spatial: spatial, temporal: temporal, isKey: isKey,
                number: UInt32(picture * spatialLayers + spatial),
                refersDown: spatial > 0 && (isKey || !refersUpInKeyframesOnly),
                distance: reference.map { picture - $0 })
        }
    }

    /// 0; 0 1; 0 2 1 2: libwebrtc's patterns.
    static func temporalLayer(at position: Int, of layers: Int) -> Int {
        switch layers {
        case 2: position % 2
        case 3: [0, 2, 1, 2][position % 4]
        default: 0
        }
    }
}
