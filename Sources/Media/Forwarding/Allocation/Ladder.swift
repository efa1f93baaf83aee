import MediaControl
import Primitives

/// The useful ways to forward one track, from the cheapest to the best.
///
/// ```text
/// motion   180p8  180p15  180p30  360p15  360p30  720p15  720p30      frames first, then size
/// detail   180p8  360p8   720p8   720p15  720p30                      size first, then frames
/// ```
/// A video of `motion` that keeps its size for a moment may also have too few frames to look smooth: 180p8 180p15 180p30 360p8 360p15 360p30 …
///
/// Every step except that one costs more than the one below it. Simulcast encoders sometimes spend less on a larger frame (of a still scene); then the smaller
/// layer is no step, because it would cost more and show less.
struct Ladder: Sendable {
    /// Ascending by quality and, except for `thinned`, by bitrate.
    let steps: [LayerOffer]
    /// The step with too few frames to look smooth, which keeps the size; nil: none. It may cost less than the smaller size below it (Chromium: 178 and
    /// 181 kbit/s), and is reached only where that one fits too.
    let thinned: LayerPoint?

    /// A larger layer with fewer frames per second than this looks worse than the smaller one at its full rate: half of the
    /// usual 30, and the rate below which talking faces look like stills. Film at 24 or 25 fps and screen shares at 5 fps are judged
    /// by their own full rate, of which half is enough.
    static let smoothFramesPerSecond = 14.0
    /// Fewer look like stills, even for a moment: a screen share's usual rate.
    private static let fewestFramesPerSecond = 5.0
    /// Measured rates vary: the lower of two temporal layers has 45 to 55 % of the frames from second to second, and a step that appears and
    /// disappears with that drops the video by a size (measured: three times in ten minutes of Chromium on 600 kbit/s).
    private static let wavering = 0.8

    /// The ladder of `offers` under a subscriber's limits; empty when nothing is offered. `kept`: the spatial layer that may have too few frames to look
    /// smooth.
    init(_ offers: [LayerOffer], hint: ContentHint, limits: ViewerLimits, keeping kept: Int? = nil) {
        let allowed = limits.apply(to: offers.filter { $0.bitrate > .zero })
        let smooth = Self.ascending(hint.keepsResolution ? Self.detail(allowed) : Self.motion(allowed))
        let fewest = allowed.filter { $0.point.spatial == kept }.min { $0.point < $1.point }
        guard !hint.keepsResolution, let fewest, fewest.framesPerSecond >= Self.fewestFramesPerSecond,
            let above = smooth.firstIndex(where: { $0.point.spatial == kept }), above > 0,
            fewest.bitrate < smooth[above].bitrate
        else {
            steps = smooth
            thinned = nil
            return
        }
        steps = smooth[..<above] + [fewest] + smooth[above...]
        thinned = fewest.point
    }

    private static func motion(_ offers: [LayerOffer]) -> [LayerOffer] {
        let lowest = offers.map(\.point.spatial).min() ?? 0
        var full: [Int: Double] = [:]
        for offer in offers { full[offer.point.spatial] = max(full[offer.point.spatial] ?? 0, offer.framesPerSecond) }
        return offers.filter { offer in
            let enough = wavering * min(smoothFramesPerSecond, (full[offer.point.spatial] ?? 0) / 2)
            return offer.point.spatial == lowest || offer.framesPerSecond >= enough
        }
        .sorted { $0.point < $1.point }
    }

    private static func detail(_ offers: [LayerOffer]) -> [LayerOffer] {
        let top = offers.map(\.point.spatial).max() ?? 0
        var slowest: [Int: Int] = [:]
        for offer in offers {
            slowest[offer.point.spatial] = min(slowest[offer.point.spatial] ?? .max, offer.point.temporal)
        }
        return offers.filter { $0.point.spatial == top || $0.point.temporal == slowest[$0.point.spatial] }
            .sorted { $0.point < $1.point }
    }

    /// Removes every step that a better one undercuts in bitrate.
    private static func ascending(_ offers: [LayerOffer]) -> [LayerOffer] {
        var kept: [LayerOffer] = []
        for offer in offers.reversed() where kept.last.map({ offer.bitrate < $0.bitrate }) ?? true {
            kept.append(offer)
        }
        return kept.reversed()
    }

    /// The next step that has enough frames; nil: none.
    func step(above index: Int) -> LayerOffer? { steps.dropFirst(index + 1).first { $0.point != thinned } }

    /// The highest step that is no better than the layer; nil when even the lowest is.
    func index(of layer: LayerPoint) -> Int? { steps.lastIndex { $0.point <= layer } }
}

/// The maximum that a subscriber prefers of a track; nil: no limit.
public struct ViewerLimits: Sendable, Hashable {
    /// Height in pixels of the element that shows the video: a layer that fills it is enough.
    public var height: Int?
    /// The highest spatial layer, where a subscriber selects a layer by name or rank.
    public var spatial: Int?
    /// Frames per second.
    public var framesPerSecond: Double?

    public init(height: Int? = nil, spatial: Int? = nil, framesPerSecond: Double? = nil) {
        self.height = height
        self.spatial = spatial
        self.framesPerSecond = framesPerSecond
    }

    /// The offers within the limits; never empty unless `offers` is: a limit below the lowest layer means the lowest.
    func apply(to offers: [LayerOffer]) -> [LayerOffer] {
        guard let lowest = offers.map(\.point.spatial).min() else { return [] }
        var top = spatial.map { max($0, lowest) } ?? .max
        if let height {
            let filling = LayerFit.rank(
                reaching: height, among: offers.lazy.map { ($0.point.spatial, $0.height) })
            top = min(top, filling ?? .max)
        }
        var left = offers.filter { $0.point.spatial <= top }
        guard let framesPerSecond else { return left }
        // Measured rates vary: a tenth above the limit still counts as within it.
        let slowest = Dictionary(grouping: left, by: \.point.spatial).mapValues { $0.map(\.point.temporal).min() ?? 0 }
        left.removeAll {
            $0.framesPerSecond > framesPerSecond * 1.1 && $0.point.temporal > slowest[$0.point.spatial] ?? 0
        }
        return left
    }
}
