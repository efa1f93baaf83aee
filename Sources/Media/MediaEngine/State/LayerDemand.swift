import Forwarding
import MediaControl
import Primitives

/// The demand of all subscribers of a video for its layers, as last announced to its publisher. Layers are bits, by `LayerMask`.
///
/// Demand is what subscribers prefer, not what they are sent: a layer that exceeds their bandwidth may fit any moment, and stopping it
/// would restart the encoder of all layers whenever an estimate fluctuates. Layers below one in demand are in demand too: they are the fallback
/// when bandwidth falls.
///
/// A layer that is in demand again is announced at once; one that is no longer in demand, only once that has lasted.
struct LayerDemand {
    /// The announced demand: initially all layers.
    private var announced = UInt8.max
    /// When layers without demand are announced.
    private(set) var deadline = MonotonicTime.distantFuture

    /// A window that is resized, or a speaker who is briefly hidden, is no reason to restart an encoder. Well within the 5 s
    /// after which a publisher should have stopped sending.
    private static var patience: TimeSpan { .seconds(2) }

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

    /// The layers that the subscribers of a track prefer, by their position in the description, or of the spatial layers inside the only stream. Without
    /// subscribers the smallest layer of a description stays in demand, so that a new subscriber has video at once; if all subscribers hide the video,
    /// none does.
    static func wanted(ofTrack index: Int, in tables: borrowing Tables) -> UInt8 {
        let track = tables.tracks[index].pointee.track
        let all = all(of: track)
        var wanted: UInt8 = 0
        // A recording uses the best layer.
        guard tables.tracks[index].pointee.recording < 0 else { return all }
        // Layers inside a stream resume slowly: Chromium took 11 s from the smallest to the largest, as its encoder and its estimate restart.
        guard tables.tracks[index].pointee.subscriptions.count > 0 else {
            return track.layerCount > 1 ? upTo(0, of: track) : all
        }
        for state in tables.subscriptions(ofTrack: index) {
            // This is computed anew for each of a thousand leaving subscribers, so it stops when the demand cannot grow any more.
            guard wanted != all else { break }
            guard !state.pointee.subscription.isPaused, !state.pointee.allocation.display.isHidden else { continue }
            // A surplus video may be the next speaker's: keep its smallest layer ready.
            wanted |=
                state.pointee.allocation.isSurplus
                ? upTo(0, of: track) : within(state.pointee.subscription.limits(of: track), of: track)
        }
        return wanted
    }
}
