import Synchronization

/// The tracks that are being recorded, by the numbers of their streams: a limited number of places. A track takes its place with the decision to record it,
/// before the recorder's thread knows of it, so that many decisions in a row cannot exceed the limit. A step of a room that ends tracks may record as many
/// others at once: until the files of the ended ones are finished, more places are taken than exist, and none are free.
final class TrackPlaces: Sendable {
    private let maximum: Int
    private let taken = Mutex<Set<UInt64>>([])

    init(_ maximum: Int) { self.maximum = maximum }

    var count: Int { taken.withLock(\.count) }

    /// How many more tracks may be recorded; briefly below zero after others have reserved the places of tracks that end.
    var left: Int { maximum - count }

    func reserve(_ stream: UInt64) { taken.withLock { _ = $0.insert(stream) } }

    /// Frees the place of a track, if it has one.
    func release(_ stream: UInt64) { taken.withLock { _ = $0.remove(stream) } }
}
