import Forwarding
import MediaControl
import Primitives

/// The last decisions about one peer's pictures.
struct DecisionLog {
    /// A minute of a call on a bad link, and a day of one on a good link.
    static let capacity = 64
    private var records: [DecisionRecord] = []
    private var next = 0

    mutating func append(_ record: DecisionRecord) {
        if records.count < Self.capacity {
            records.append(record)
        } else {
            records[next] = record
        }
        next = (next + 1) % Self.capacity
    }

    /// Oldest first.
    var all: [DecisionRecord] {
        records.count < Self.capacity ? records : Array(records[next...] + records[..<next])
    }

    var memoryBytes: Int { records.capacity * MemoryLayout<DecisionRecord>.stride }
}

extension DecisionRecord {
    /// What the allocation decided, in the words of the vocabulary.
    init(
        _ decision: AllocationDecision, track: TrackID?, estimate: Bitrate?, at now: MonotonicTime
    ) {
        self.init(
            time: now, subscription: decision.id, track: track, layer: decision.layer.map(Layer.init),
            estimate: estimate, reason: decision.reason.word)
        next = decision.next.map(Layer.init)
        switch decision.reason {
        case .bandwidth(let needed, let available), .capped(let needed, let available),
            .shortage(let needed, let available):
            self.needed = needed
            self.available = available
        case .oversent(let excess): needed = excess
        case .best, .asWished, .settling, .yieldsToScreen, .tooManyVideos, .blocked: break
        }
    }
}

extension DecisionRecord.Layer {
    init(_ offer: LayerOffer) {
        self.init(
            spatial: offer.spatial, temporal: offer.temporal, height: offer.height,
            framesPerSecond: offer.framesPerSecond, bitrate: offer.bitrate)
    }
}

extension AllocationDecision.Reason {
    /// The stable word of the reason.
    var word: String {
        switch self {
        case .best: "best"
        case .asWished: "asWished"
        case .bandwidth: "bandwidth"
        case .capped: "capped"
        case .settling: "settling"
        case .yieldsToScreen: "yieldsToScreen"
        case .oversent: "oversent"
        case .shortage: "shortage"
        case .tooManyVideos: "tooManyVideos"
        case .blocked(.paused): "paused"
        case .blocked(.hidden): "hidden"
        case .blocked(.notSent): "notSent"
        }
    }

    /// More would be sent if more could be.
    var isShort: Bool {
        switch self {
        case .bandwidth, .settling, .yieldsToScreen, .oversent, .shortage: true
        case .best, .asWished, .capped, .tooManyVideos, .blocked: false
        }
    }
}
