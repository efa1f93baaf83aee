import MediaEngine
import Primitives

/// The feeds that are played into a worker's rooms: passes each packet to the engine when it is due.
struct PlaybackLane: ~Copyable {
    private var feeds: ContiguousArray<PlaybackFeed> = []
    private let scratch = UnsafeMutableRawBufferPointer.allocate(
        byteCount: PlaybackFeed.maximumPacket, alignment: 16)
    private var next = MonotonicTime.distantFuture

    /// Tracks that one worker plays at a time: `playback.maximum` is at most 1,000, with two tracks each.
    static let maximumFeeds = 2_048
    /// Packets of one feed per turn: a burst after a stall must not delay the other feeds.
    private static let packetsPerTurn = 64
    /// An empty feed is checked again after this: the player fills it long before its packets are due.
    private static let lookInterval = TimeSpan.milliseconds(10)
    /// An idle feed is attached again before its next packet. It may be closed first, and holds a megabyte.
    private static let restInterval = TimeSpan.seconds(1)

    deinit { scratch.deallocate() }

    /// Plays a feed from now on, or again after it was idle; false if there are too many.
    mutating func attach(_ feed: PlaybackFeed) -> Bool {
        if !feeds.contains(where: { $0 === feed }) {
            guard feeds.count < Self.maximumFeeds else { return false }
            feeds.append(feed)
        }
        next = .zero
        return true
    }

    /// When `play` has something to do.
    var nextDeadline: MonotonicTime { next }

    /// Passes packets that are due to the engine. Nothing is allocated.
    mutating func play(into engine: WorkerEngine, at now: MonotonicTime) {
        guard next <= now else { return }
        next = .distantFuture
        var index = 0
        while index < feeds.count {
            guard !feeds[index].isClosed else {
                feeds.swapAt(index, feeds.count - 1)
                feeds.removeLast()
                continue
            }
            var left = Self.packetsPerTurn
            var due = feeds[index].nextDue
            while let moment = due, moment <= now, left > 0 {
                let packet = feeds[index].pop(into: scratch, at: now)
                engine.receivePlayed(
                    UnsafeMutableRawBufferPointer(rebasing: scratch[..<packet.length]), isRTCP: packet.isRTCP,
                    of: feeds[index].peer, at: now)
                left -= 1
                due = feeds[index].nextDue
            }
            next = min(next, due ?? now + (feeds[index].isResting ? Self.restInterval : Self.lookInterval))
            index += 1
        }
    }
}
