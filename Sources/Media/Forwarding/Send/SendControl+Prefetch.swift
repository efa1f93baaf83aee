import CongestionControl
import Primitives

extension SendControl {
    /// The pacer, and the beginning of the estimator.
    private static let hotBytes = 384

    /// Asks for the memory that `refill`, `sent` and `spend` use.
    @inline(__always) public static func prefetch(_ control: UnsafePointer<SendControl>) {
        Prefetch.lines(control, hotBytes)
    }

    /// Asks for the place that `sent` will fill.
    @inline(__always) public func prefetch(next sequence: UInt16) { estimator.prefetch(next: sequence) }

    /// Asks for the memory that `take` uses.
    @inline(__always) public static func prefetchForReports(_ control: UnsafePointer<SendControl>) {
        Prefetch.lines(control, MemoryLayout<SendControl>.size)
    }

    /// Asks for the log of the packets that the next report tells of.
    @inline(__always) public func prefetchReported() { estimator.prefetchReported() }
}
