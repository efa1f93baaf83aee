import Forwarding
import Primitives

/// What all subscribers of a video want of its layers, as its publisher knows it. Layers are bits, by `LayerMask`.
///
/// A layer that is wanted again is announced at once, one that nobody wants any more when that has lasted.
struct LayerDemand {
    /// What the publisher knows to be wanted: all layers to begin with.
    private var announced = UInt8.max
    /// When layers that nobody wants any more are announced.
    private(set) var deadline = MonotonicTime.distantFuture

    /// A window that is resized, a speaker who is not shown for a moment: that is no reason to restart an encoder. Well within the 5 s
    /// after which a publisher should be sending no more.
    private static var patience: TimeInterval { .seconds(2) }

    /// Takes what is wanted now of `all` layers; what to announce, nil for nothing.
    mutating func update(to wanted: UInt8, of all: UInt8, at now: MonotonicTime) -> UInt8? {
        var announcement: UInt8?
        if wanted & ~announced != 0 {
            announced = (announced & all) | wanted
            announcement = announced
        }
        if wanted == announced & all {
            deadline = .distantFuture
        } else if deadline == .distantFuture {
            deadline = now + Self.patience
        }
        return announcement
    }

    /// The deadline has come with `wanted` of `all` layers; what to announce, nil for nothing.
    mutating func expire(with wanted: UInt8, of all: UInt8) -> UInt8? {
        deadline = .distantFuture
        guard wanted != announced & all else { return nil }
        announced = wanted
        return wanted
    }
}

/// Layers as bits: by their place in the description, or where there is only one stream its spatial layers.
enum LayerMask {
    static func all(of track: PublishedTrack) -> UInt8 { UInt8(truncatingIfNeeded: 1 << track.choiceCount - 1) }

    /// The layers up to a rank.
    static func upTo(_ rank: Int, of track: PublishedTrack) -> UInt8 {
        var mask: UInt8 = 0
        for index in 0..<track.choiceCount where track.rank(ofChoice: index) <= rank { mask |= 1 << UInt8(index) }
        return mask
    }

    /// The layers that a subscriber with these limits may be sent.
    static func within(_ limits: ViewerLimits, of track: PublishedTrack) -> UInt8 {
        var top = limits.spatial ?? .max
        if let height = limits.height { top = min(top, track.rank(reaching: height) ?? .max) }
        return top >= track.choiceCount ? all(of: track) : upTo(max(top, 0), of: track)
    }
}
