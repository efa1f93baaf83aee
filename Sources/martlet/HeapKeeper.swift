import HTTPServing
import Logging
import NetworkIO
import RoomService

/// Returns freed memory to the machine when load has decreased.
///
/// By itself the allocator keeps nearly all of it: after 1,500 sessions with hostile descriptions the heap had 367 MB, and 7 MB of them were in use.
struct HeapKeeper {
    /// How often to look.
    static let interval = Duration.seconds(5)
    /// Less than this is not worth the pause of threads that allocate meanwhile.
    static let worthwhileBytes: UInt64 = 16 << 20
    /// The memory of so many connections is worth it in any case. Memory that was freed after the last return was resident at that time, so no difference shows
    /// it (1,186 sessions ended within a second: with one check in the middle, the process kept 34 MB more than before, with two checks 27 MB).
    static let worthwhileConnections = 64

    /// After so many checks without a new peak (a minute), memory that was allocated is hardly that of joins. Refused requests may have allocated it during a
    /// call.
    static let quietLooks = 12

    /// Resident memory after the last return.
    private var floorBytes: UInt64
    /// The most connections since then, of media and of HTTP.
    private var peak = 0
    private var looksSincePeak = 0

    init(residentBytes: UInt64) { floorBytes = residentBytes }

    /// Whether memory is to be returned now: much was allocated since the last time or many connections have ended, and at most half of the load is left; or
    /// much was allocated and the load has not grown for a minute. Never while the load grows, because joins then allocate on the media threads.
    mutating func isDue(residentBytes: UInt64, connections: Int) -> Bool {
        looksSincePeak = connections > peak ? 0 : looksSincePeak + 1
        peak = max(peak, connections)
        let hasTakenMuch = residentBytes > floorBytes + Self.worthwhileBytes
        guard connections <= peak / 2 else { return hasTakenMuch && looksSincePeak >= Self.quietLooks }
        return hasTakenMuch || peak - connections >= Self.worthwhileConnections
    }

    /// Memory was returned, or could not be: the rest is in use.
    mutating func gaveBack(residentBytes: UInt64, connections: Int) {
        floorBytes = residentBytes
        peak = connections
        looksSincePeak = 0
    }

    /// Checks regularly until the task is cancelled.
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
            // Connections that ended may have left nothing to return; this is not logged.
            guard megabytes > 0 else { continue }
            logger.info("returned freed memory to the system", ["megabytes": .number(megabytes)])
        }
    }
}
