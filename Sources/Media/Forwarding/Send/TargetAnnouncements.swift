/// When the dependency descriptors of one subscription announce that decode targets are missing; see `AnnouncedTargets`.
struct TargetAnnouncements {
    /// The subscriber has received, since the last keyframe, an announcement that some are missing.
    private var areLimited = false

    init() {}

    /// The announcement in the first packet of a frame of the lowest layers while `caps` are in force; nil: none.
    mutating func next(_ caps: LayerCaps, atKeyframe isKeyframe: Bool) -> LayerMark? {
        let mark = LayerMark(targets: caps)
        if !mark.announcesAll {
            areLimited = true
            return mark
        }
        guard areLimited else { return nil }
        // A keyframe's structure announces the same.
        if isKeyframe { areLimited = false }
        return isKeyframe ? nil : mark
    }
}
