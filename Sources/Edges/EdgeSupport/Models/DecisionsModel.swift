import Primitives
public import RoomService

/// The remembered decisions about how a participant's bandwidth was allocated, oldest first.
public struct DecisionsModel: Encodable, Sendable, Hashable {
    /// The last decisions.
    public var decisions: [DecisionModel]
    /// The bandwidth estimates of the path in the last hour.
    public var estimates: [EstimateModel]

    /// The lowest and the highest estimate of twenty seconds, in bits per second.
    public struct EstimateModel: Encodable, Sendable, Hashable {
        /// When the twenty seconds began: milliseconds since 1970.
        var at: Int64
        var min: Int64
        var max: Int64
    }

    /// The model of `report`.
    public init(_ report: DecisionsReport) {
        decisions = report.decisions.map { DecisionModel($0) }
        estimates = report.estimates.map {
            EstimateModel(at: $0.at, min: $0.least.bitsPerSecond, max: $0.most.bitsPerSecond)
        }
    }
}
