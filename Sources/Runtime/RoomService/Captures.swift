import Primitives
import Rooms

/// The captures that go on, and those that wait to be fetched.
struct Captures {
    /// How many are kept at once: with `CaptureRequest.sizes` a bound of memory.
    private static let maximumCount = 4

    private var captures: [RunningCapture] = []
    /// Asks for captures to be looked after: one has begun.
    let begun = Signal()

    /// Those that go on.
    var running: [RunningCapture] { captures.filter { $0.info.end == nil } }

    func find(_ id: String) -> RunningCapture? { captures.first { $0.info.id == id } }

    /// Of a participant, named by sid or identity, oldest first.
    func list(of participant: String, in room: String) -> [CaptureInfo] {
        captures.map(\.info).filter { $0.room == room && ($0.participant == participant || $0.identity == participant) }
    }

    /// Refuses one more than may be kept.
    func checkCount() throws(RoomError) {
        guard captures.count < Self.maximumCount else {
            throw RoomError(
                .rateLimited, "the server keeps as many captures as it may; delete one", retryAfter: .seconds(10))
        }
    }

    mutating func add(_ capture: RunningCapture) { captures.append(capture) }

    mutating func remove(_ capture: RunningCapture) { captures.removeAll { $0 === capture } }

    /// A participant was moved: captures of it that go on are over, and remain those of the room in which they began.
    func participantMoved(_ sid: String, at now: MonotonicTime) {
        for capture in running where capture.info.participant == sid { capture.participantMoved(at: now) }
    }
}
