import MediaControl
import MediaWorkers
import NetworkIO
import Primitives
import Rooms

/// The thread that reads the workers' rings and writes the files. Its writes may block as long as the disk does: the rings limit how much
/// waits, and workers drop what does not fit.
final class RecorderThread: Sendable {
    /// Orders for the thread, in sequence.
    enum Order: Sendable {
        case begin(RecordingSummary)
        case track(recording: String, stream: SubscriptionID, track: TrackID, TrackInfo)
        case refused(recording: String, TrackInfo, RecordingRefusal)
        case end(recording: String)
        case stop
    }

    /// Reports of the thread.
    struct News: Sendable {
        var room: String
        var roomSID: String
        var event: RecordingEvent?
        /// A keyframe of this track is needed.
        var keyframe: TrackID?
        /// Recording of this stream has stopped: the disk is full.
        var gaveUp: SubscriptionID?
    }

    /// No wake-up for each packet: records wait in the rings at most this long.
    private static let pollInterval = TimeSpan.milliseconds(5)
    static let advanceInterval = TimeSpan.milliseconds(250)

    private let wake: WakeSignal
    private let orders: Mailbox<Order>
    private let rings: [RecordRing]
    private let books: RecordingBooks
    private let news: AsyncStream<News>.Continuation
    private let finisher: FileFinisher?

    init(
        rings: [RecordRing], books: RecordingBooks, finisher: FileFinisher?, news: AsyncStream<News>.Continuation
    ) throws(SystemError) {
        wake = try WakeSignal()
        orders = Mailbox(wake: wake)
        self.rings = rings
        self.books = books
        self.finisher = finisher
        self.news = news
    }

    func post(_ order: Order) { _ = orders.post(order) }

    /// Runs until it is stopped.
    func run() {
        Scheduling.yieldCurrentThread()
        guard let poller = try? Poller(), (try? poller.add(wake.descriptor)) != nil else {
            preconditionFailure("the recorder cannot wait for its orders")
        }
        var desk = RecorderDesk(books: books, finisher: finisher, news: news)
        var taken: [Order] = []
        var waiting = [Int](repeating: 0, count: rings.count)
        var nextAdvance = MonotonicTime.zero
        while true {
            let now = MonotonicClock.now()
            // The disk is checked without recordings, too: otherwise a full one would refuse them forever.
            let deadline = now + (desk.isIdle ? RecorderDesk.lookInterval : Self.pollInterval)
            let ready = poller.wait(until: deadline, now: now)
            if poller.isReady(wake.descriptor, of: ready) { wake.clear() }
            // Only records that waited before the orders were taken are read. A track is ordered before its first record is pushed, so the tracks of these
            // are known; a later record may belong to a track whose order was not taken yet, and its first keyframe would be lost.
            for index in rings.indices { waiting[index] = rings[index].waiting }
            orders.drain(into: &taken)
            for order in taken {
                guard desk.carryOut(order, at: MonotonicClock.now()) else {
                    desk.read(rings, upTo: rings.map(\.waiting))
                    return desk.finishAll()
                }
            }
            taken.removeAll(keepingCapacity: true)
            desk.read(rings, upTo: waiting)
            let later = MonotonicClock.now()
            guard later >= nextAdvance else { continue }
            nextAdvance = later + Self.advanceInterval
            desk.advance(to: later)
        }
    }
}

extension RecorderThread.News {
    /// A recording has ended: its files are ready, or it has none.
    init(endOf summary: RecordingSummary) {
        self.init(
            room: summary.room, roomSID: summary.roomSid,
            event: summary.state == .ready
                ? RecordingEvent(.ready, recording: summary.sid)
                : RecordingEvent(.failed, recording: summary.sid, reason: "no_media"))
    }
}
