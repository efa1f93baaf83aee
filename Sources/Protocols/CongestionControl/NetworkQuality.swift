public import Primitives

/// How good a participant's network is, 0 to 5 (I7), as the common SDKs count: 5 excellent, 3 usable, 1 bad, 0 nothing arrives.
///
/// Only what the network does counts. A quiet microphone, a 2 fps screen or a muted camera is not a bad network (A11).
public enum NetworkQuality {
    /// The level by loss (0 to 1), round trip, queueing delay and the share of what is wanted that fits (1 where nothing is missing).
    public static func level(
        loss: Double, roundTrip: TimeInterval?, queueDelay: TimeInterval, servedShare: Double, isSilent: Bool
    ) -> Int {
        guard !isSilent else { return 0 }
        var level = 5
        level = min(level, loss < 0.01 ? 5 : loss < 0.03 ? 4 : loss < 0.08 ? 3 : loss < 0.2 ? 2 : 1)
        if let roundTrip {
            let milliseconds = roundTrip.milliseconds
            level = min(level, milliseconds < 250 ? 5 : milliseconds < 400 ? 4 : milliseconds < 700 ? 3 : 2)
        }
        level = min(level, queueDelay < .milliseconds(100) ? 5 : queueDelay < .milliseconds(250) ? 4 : 3)
        level = min(level, servedShare >= 0.9 ? 5 : servedShare >= 0.6 ? 4 : servedShare >= 0.3 ? 3 : 2)
        return level
    }
}
