import NetworkIO
import Primitives

/// A worker's socket for transport-wide feedback, and when to read it.
///
/// Each subscriber reports twenty times a second. A report may wait some milliseconds, as it did in its sender and on its way; waking the
/// loop for each costs three times as much as the report. So at high rates reports are fetched together, at the turns of media
/// or by a timer; at low rates each wakes the loop, which costs less than a timer.
struct FeedbackLane: ~Copyable {
    /// The longest time that a report waits. Feedback intervals are 50 ms and more.
    private static let longestWait = TimeSpan.milliseconds(8)
    /// Turns of media read it no more often than this.
    private static let leastPause = TimeSpan.milliseconds(4)
    /// Reports are counted over this …
    private static let window = TimeSpan.milliseconds(100)
    /// … and this many are two for each expiry of the timer.
    private static let busy = 25

    private var socket: UDPSocket?
    /// For the poller, while `isWatched`; nil if the kernel cannot split a port, and feedback arrives on the media socket.
    let descriptor: Int32?
    /// Whether a report is to wake the loop.
    private(set) var isWatched = true
    private var lastLook = MonotonicTime.zero
    private var windowStart = MonotonicTime.zero
    private var count = 0

    init(besides media: borrowing UDPSocket, _ configuration: UDPSocketConfiguration) {
        do throws(SystemError) {
            let split = try UDPSocket(feedbackOf: media, configuration)
            descriptor = split.descriptor
            socket = consume split
        } catch {
            descriptor = nil
            socket = nil
        }
    }

    var receiveCalls: UInt64 {
        switch socket {
        case .some(let socket): socket.counters.receiveCalls
        case nil: 0
        }
    }
    var receiveBufferDrops: UInt64 {
        switch socket {
        case .some(let socket): socket.receiveBufferDrops
        case nil: 0
        }
    }

    /// Fetches some of the waiting datagrams; valid until the next call.
    mutating func receiveSome() -> UnsafeBufferPointer<ReceivedRun> {
        guard descriptor != nil else { return UnsafeBufferPointer(start: nil, count: 0) }
        let count = socket!.receiveSome()
        return socket!.received(count)
    }

    /// When the loop must read without being woken.
    var nextLook: MonotonicTime { isWatched ? .distantFuture : lastLook + Self.longestWait }

    /// Whether a turn that happens anyway should read.
    func isDue(at now: MonotonicTime) -> Bool { !isWatched && now - lastLook >= Self.leastPause }

    /// Records a read that found this many reports.
    mutating func looked(found: Int, at now: MonotonicTime) {
        lastLook = now
        count += found
        guard now - windowStart >= Self.window else { return }
        // A window that ended long ago is meaningless now; the next one decides.
        isWatched = count < Self.busy
        windowStart = now
        count = 0
    }
}
