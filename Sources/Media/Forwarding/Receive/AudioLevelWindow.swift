public import Primitives

/// The loudness of one audio track over the last second, on a grid of 20 ms of media time, whatever the packet size
/// (A4) and however bursty the arrival (B10).
public struct AudioLevelWindow: Sendable {
    public init() {}
}
