import HTTPServing
import Logging
import NetworkIO
import RoomService

/// Gives freed memory back to the machine when load has gone.
///
/// The allocator keeps nearly all of it by itself: after 1,500 sessions with hostile descriptions 367 MB were the heap's and 7 MB of them in use.
struct HeapKeeper {
    /// How often to look.
    static let interval = Duration.seconds(5)
    /// Less than this is not worth the pause of threads that allocate meanwhile.
    static let worthwhileBytes: UInt64 = 16 << 20
    /// What so many connections had is worth it in any case. What became free after memory was given back last was resident then, so no difference shows it (1,186 sessions
    /// ended within a second: with one look, in the middle, the process kept 34 MB more than before, with two 27 MB).
    static let worthwhileConnections = 64

    /// Looks without a new peak after which what was taken is hardly that of joins: a minute. Requests that were refused may have taken it while a call went on.
    static let quietLooks = 12

    /// Resident after memory was given back last.
    private var floorBytes: UInt64
    /// The most connections since then, of media and of HTTP.
    private var peak = 0
    private var looksSincePeak = 0

    init(residentBytes: UInt64) { floorBytes = residentBytes }

    /// Whether memory is to be given back now: much was taken since the last time or many connections have ended, and at most half of the load is left; or much was taken
    /// and the load has not grown for a minute. Never while it grows, when joins allocate on the media threads.
    mutating func isDue(residentBytes: UInt64, connections: Int) -> Bool {
        looksSincePeak = connections > peak ? 0 : looksSincePeak + 1
        peak = max(peak, connections)
        let hasTakenMuch = residentBytes > floorBytes + Self.worthwhileBytes
        guard connections <= peak / 2 else { return hasTakenMuch && looksSincePeak >= Self.quietLooks }
        return hasTakenMuch || peak - connections >= Self.worthwhileConnections
    }

    /// Memory was given back, or could not be: what is left is in use.
    mutating func gaveBack(residentBytes: UInt64, connections: Int) {
        floorBytes = residentBytes
        peak = connections
        looksSincePeak = 0
    }

    /// Looks until the task is cancelled.
    static func run(_ rooms: RoomHost, _ listener: HTTPServer, _ logger: Logger) async {
        var keeper = HeapKeeper(residentBytes: MachineMemory.residentBytes())
        while (try? await Task.sleep(for: interval)) != nil {
            let before = MachineMemory.residentBytes()
            let connections = await rooms.statistics().connections + listener.statistics.connections
            guard keeper.isDue(residentBytes: before, connections: connections) else { continue }
            MachineMemory.giveBack()
            let after = MachineMemory.residentBytes()
            keeper.gaveBack(residentBytes: after, connections: connections)
            let megabytes = Int((before - min(before, after)) >> 20)
            // Connections that ended may have left nothing to return, which is no news.
            guard megabytes > 0 else { continue }
            logger.info("returned freed memory to the system", ["megabytes": .number(megabytes)])
        }
    }
}
