import MediaControl
import Primitives
public import RoomService

/// How a participant's network and media performed, in the last hour or over a stay; oldest first. Bitrates are in bits per second.
public struct HistoryModel: Encodable, Sendable, Hashable {
    /// One in 5 s.
    public var samples: [SampleModel]
    /// Decisions about what it was sent, the last ones complete; absent if they are shown separately.
    public var decisions: [DecisionModel]?
    /// The bandwidth estimates of its path; absent if they are shown separately.
    public var estimates: [DecisionsModel.EstimateModel]?

    /// What some seconds were like.
    public struct SampleModel: Encodable, Sendable, Hashable {
        /// Milliseconds since 1970.
        var at: Int64
        var uplink: Int64
        var downlink: Int64
        var loss: Double
        var roundTripMilliseconds: Int?
        var quality: Int

        init(_ sample: StaySample) {
            at = sample.at
            uplink = sample.uplink.bitsPerSecond
            downlink = sample.downlink.bitsPerSecond
            loss = sample.loss
            roundTripMilliseconds = sample.roundTripMilliseconds
            quality = sample.quality
        }
    }

    /// Samples only.
    public init(_ samples: [StaySample]) { self.samples = samples.map(SampleModel.init) }

    /// All that is kept of a stay that is over.
    public init(_ history: StayHistory) {
        self.init(history.samples)
        let model = DecisionsModel(DecisionsReport(decisions: history.allDecisions, estimates: history.estimates))
        (decisions, estimates) = (model.decisions, model.estimates)
    }
}
