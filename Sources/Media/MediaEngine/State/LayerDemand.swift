import Forwarding
import Primitives

/// The demand of all subscribers of a video for its layers, as last announced to its publisher. Layers are bits, by `LayerMask`.
///
/// A layer that is in demand again is announced at once; one that is no longer in demand, only once that has lasted.
struct LayerDemand {
    /// The announced demand: initially all layers.
    private var announced = UInt8.max
    /// When layers without demand are announced.
    private(set) var deadline = MonotonicTime.distantFuture

    /// A window that is resized, or a speaker who is briefly hidden, is no reason to restart an encoder. Well within the 5 s
    /// after which a publisher should have stopped sending.
    private static var patience: TimeInterval { .seconds(2) }

    /// Updates the demand among `all` layers; returns what to announce, nil for nothing.
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

    /// The deadline has passed with a demand for `wanted` of `all` layers; returns what to announce, nil for nothing.
    mutating func expire(with wanted: UInt8, of all: UInt8) -> UInt8? {
        deadline = .distantFuture
        guard wanted != announced & all else { return nil }
        announced = wanted
        return wanted
    }
}

/// Layers as bits: by their position in the description, or the spatial layers of the only stream.
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
