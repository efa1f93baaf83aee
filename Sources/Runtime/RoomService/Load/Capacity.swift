import Primitives
import Rooms

/// What the server has left for one participant more: joins a second, participants, peer connections, and what its workers can carry.
struct Capacity {
    private let load: LoadGate
    private var joins = RateLimit()
    private var clientJoins = ClientJoins()
    /// Of all rooms together.
    private(set) var reservedConnections = 0

    init(load: LoadGate) { self.load = load }

    /// Takes up how many peer connections a room has reserved by now.
    mutating func update(_ hosted: HostedRoom) {
        reservedConnections += hosted.room.reservedConnections - hosted.reservedConnections
        hosted.reservedConnections = hosted.room.reservedConnections
    }

    /// Refuses one participant more beside `present`.
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

    /// The worker for a new room: of those that are not full the one with the least to do. A room without anybody, which an operator makes, costs nothing.
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

    /// Refuses one more participant where calls that are up would suffer.
    func checkLoad(of worker: WorkerIndex) throws(RoomError) {
        if let resource = load.refuse(at: worker) { throw Self.overloaded(resource) }
    }

    /// Somebody has come in who was not there before. A join that the room refuses is no load: guests who wait ask again and again.
    func admitted(to worker: WorkerIndex) { load.admitted(to: worker) }

    /// As `checkLoad`, and no refusal is counted.
    func foreseeLoad(of worker: WorkerIndex) throws(RoomError) {
        if let resource = load.refusal(of: worker) { throw Self.overloaded(resource) }
    }

    /// Clients that were refused together do not know of each other; ten seconds are long enough for a meeting to end, and short enough to wait.
    private static func overloaded(_ resource: LoadResource) -> RoomError {
        RoomError(
            .overloaded, "the server is at its limit (\(resource.rawValue)); try again later", retryAfter: .seconds(10))
    }
}
