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
        let layer = decision.layer.map {
            Layer(
                spatial: $0.spatial, temporal: $0.temporal, height: $0.height, framesPerSecond: $0.framesPerSecond,
                bitrate: $0.bitrate)
        }
        self.init(
            time: now, subscription: decision.id, track: track, layer: layer, estimate: estimate,
            reason: decision.reason.word)
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
