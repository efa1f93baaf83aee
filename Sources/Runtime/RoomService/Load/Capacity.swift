import Primitives
import Rooms

/// Whether the server has room for one more participant: joins per second, participants, peer connections, and the load of its workers.
struct Capacity {
    private let load: LoadGate
    private var joins = RateLimit()
    private var clientJoins = ClientJoins()
    /// The number for all rooms together.
    private(set) var reservedConnections = 0

    init(load: LoadGate) { self.load = load }

    /// Updates how many peer connections a room has reserved.
    mutating func update(_ hosted: HostedRoom) {
        reservedConnections += hosted.room.reservedConnections - hosted.reservedConnections
        hosted.reservedConnections = hosted.room.reservedConnections
    }

    /// Refuses one more participant besides `present`.
    func check(present: Int, _ configuration: RoomServiceConfiguration) throws(RoomError) {
        guard present < configuration.maxParticipants else {
            throw RoomError(.overloaded, "participant limit of the server reached", retryAfter: .seconds(10))
        }
    }

    /// Counts a join, or refuses it.
    mutating func admitJoin(
        _ request: JoinRequest, _ configuration: RoomServiceConfiguration, at now: MonotonicTime
    ) throws(RoomError) {
        guard clientJoins.accept(request, at: now) else {
            throw RoomError(.rateLimited, "the client asks to join too often", retryAfter: .seconds(1))
        }
        let perSecond = configuration.maxJoinsPerSecond
        guard joins.accept(every: .seconds(1) / Int64(perSecond), atOnce: perSecond, at: now) else {
            throw RoomError(.rateLimited, "too many joins per second", retryAfter: .seconds(1))
        }
    }

    /// The worker for a new room: among those that are not full, the one with the least load. A room without members, which an operator creates, costs nothing.
    func worker(in media: any MediaPlane, forJoin: Bool) throws(RoomError) -> WorkerIndex {
        let full = load.fullWorkers()
        if let worker = media.leastLoadedWorker(except: full) {
            if forJoin { try checkLoad(of: worker) }
            return worker
        }
        guard let worker = media.leastLoadedWorker(except: []) else {
            throw RoomError(.overloaded, "no media worker is available for the room", retryAfter: .seconds(5))
        }
        if forJoin { try checkLoad(of: worker) }
        return worker
    }

    /// Refuses one more participant if current calls would suffer.
    func checkLoad(of worker: WorkerIndex) throws(RoomError) {
        if let resource = load.refuse(at: worker) { throw Self.overloaded(resource) }
    }

    /// A new participant has joined. A join that the room refuses is no load: waiting guests repeat their requests.
    func admitted(to worker: WorkerIndex) { load.admitted(to: worker) }

    /// Like `checkLoad`, but no refusal is counted.
    func foreseeLoad(of worker: WorkerIndex) throws(RoomError) {
        if let resource = load.refusal(of: worker) { throw Self.overloaded(resource) }
    }

    /// Clients that were refused at the same time do not know of each other; ten seconds are long enough for a meeting to end, and short enough to wait.
    private static func overloaded(_ resource: LoadResource) -> RoomError {
        RoomError(
            .overloaded, "the server is at its limit (\(resource.rawValue)); try again later", retryAfter: .seconds(10))
    }
}
