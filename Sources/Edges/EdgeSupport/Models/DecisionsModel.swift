import Primitives
public import RoomService

/// What is remembered of how a participant's bandwidth was shared out, oldest first.
public struct DecisionsModel: Encodable, Sendable, Hashable {
    /// The last decisions.
    public var decisions: [DecisionModel]
    /// What the path was believed to carry in the last hour.
    public var estimates: [EstimateModel]

    /// The lowest and the highest estimate of twenty seconds, in bits a second.
    public struct EstimateModel: Encodable, Sendable, Hashable {
        /// When they began: milliseconds since 1970.
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
