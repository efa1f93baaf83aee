import Primitives
import Rooms

/// The running captures, and those that wait to be fetched.
struct Captures {
    /// The maximum number: with `CaptureRequest.sizes` this limits the memory.
    private static let maximumCount = 4
    /// An ended one is kept at least this long, so that a person can fetch it.
    static let keptTime = TimeSpan.seconds(600)

    private var captures: [RunningCapture] = []
    /// Wakes the loop that collects captures: one has begun.
    let begun = Signal()

    /// The running captures.
    var running: [RunningCapture] { captures.filter { $0.info.end == nil } }

    func find(_ id: String) -> RunningCapture? { captures.first { $0.info.id == id } }

    /// The captures of a participant, named by sid or identity, oldest first.
    func list(of participant: String, in room: String) -> [CaptureInfo] {
        captures.map(\.info).filter { $0.room == room && ($0.participant == participant || $0.identity == participant) }
    }

    /// Makes room for one more: at the limit, the one that ended first is removed, if it could be fetched for long enough. Nobody needs to delete it: its
    /// creator may have left, and others must not have to wait for that.
    mutating func makeRoom(at now: MonotonicTime) throws(RoomError) {
        guard captures.count >= Self.maximumCount else { return }
        let ended = captures.compactMap { capture in capture.endedAt.map { (capture, $0) } }
        guard let (oldest, end) = ended.min(by: { $0.1 < $1.1 }) else {
            throw Self.full(retryAfter: .seconds(10))
        }
        guard now - end >= Self.keptTime else { throw Self.full(retryAfter: Self.keptTime - (now - end)) }
        remove(oldest)
    }

    private static func full(retryAfter: TimeSpan) -> RoomError {
        RoomError(
            .rateLimited, "the server keeps as many captures as it may; delete one", retryAfter: retryAfter)
    }

    mutating func add(_ capture: RunningCapture) { captures.append(capture) }

    mutating func remove(_ capture: RunningCapture) { captures.removeAll { $0 === capture } }

    /// A participant was moved: its running captures end, and remain those of the room in which they began.
    func participantMoved(_ sid: String, at now: MonotonicTime) {
        for capture in running where capture.info.participant == sid { capture.participantMoved(at: now) }
    }
}
