import Synchronization

/// The tracks that are recorded at a time, by the numbers of their streams: a bounded number of places. A track takes its place with the decision to record it, before
/// the recorder's thread knows of it, so that many decisions in a row cannot exceed the bound.
final class TrackPlaces: Sendable {
    private let maximum: Int
    private let taken = Mutex<Set<UInt64>>([])

    init(_ maximum: Int) { self.maximum = maximum }

    var count: Int { taken.withLock(\.count) }

    /// How many further tracks may be recorded.
    var left: Int { maximum - count }

    func take(_ stream: UInt64) { taken.withLock { _ = $0.insert(stream) } }

    /// Gives up the place of a track, if it has one.
    func release(_ stream: UInt64) { taken.withLock { _ = $0.remove(stream) } }
}
