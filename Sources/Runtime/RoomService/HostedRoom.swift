import Cryptography
import MediaControl
import Primitives
import Rooms

/// A room and the worker that has its media. Used only by the service's actor.
final class HostedRoom {
    var room: Room { didSet { knownDeadline = nil } }
    /// The room's next deadline; nil: the room has changed since this was computed, which goes through all of its members.
    private var knownDeadline: MonotonicTime?
    let worker: WorkerIndex
    /// The rules below the room's own document: the server's defaults overridden by the preset.
    let base: RoomPolicy
    let preset: String?
    /// Whether its worker has carried out commands for it.
    var hasWorked = false
    /// The client whose pre-call check it serves.
    let checker: ClientMark?
    /// Whether it serves a pre-call check: no list, event or summary mentions it.
    var isCheck: Bool { checker != nil }
    /// The room's own rules.
    var document: PolicyDocument
    /// The hash of the room's password, if it requires one, to check joins.
    private(set) var password: PasswordHash?
    /// Changes with the password, so that a check that took a long time notices.
    private(set) var lockRevision = 0
    /// Members that left recently and may come back.
    var recentMembers = RecentMembers()
    /// Data about current stays.
    var stays = StayLog()
    private(set) var trackNames = TrackNames()
    /// The last hour of the room, its tracks and its subscriptions.
    var streams = StreamLog()
    /// The number of the room's last event.
    private var lastEvent: UInt64 = 0
    /// When a refused join was last logged, by code: a crowd before a full room must not fill the log.
    private var refusals: [RoomError.Code: MonotonicTime] = [:]
    /// The same for refused publications.
    private var publicationRefusals: [RoomError.Code: MonotonicTime] = [:]
    /// The number counted in the service's total.
    var reservedConnections = 0
    var quality = QualityWatch()

    init(
        room: Room, worker: WorkerIndex, base: RoomPolicy, preset: String?, document: PolicyDocument,
        checker: ClientMark? = nil
    ) {
        self.room = room
        self.worker = worker
        self.base = base
        self.preset = preset
        self.checker = checker
        self.document = document
    }

    /// The room was locked or unlocked, with a password or without one.
    func lockChanged(_ password: PasswordHash?) {
        self.password = password
        lockRevision += 1
    }

    /// Records the effects of a command to the worker on who owns what.
    func note(_ command: MediaCommand) {
        switch command {
        case .addPeer(let peer):
            guard let owner = room.owner(of: peer.id), let info = room.participant(owner.session) else { return }
            stays.add(peer.id, of: info.sid)
        case .addTrack(let track):
            guard let (_, info) = room.published(track.id) else { return }
            trackNames.note(track.id, info.sid)
        default: break
        }
    }

    /// A participant came from another room, with peers and tracks with these numbers: its tracks are not added anew.
    func noteMoved(_ numbers: [UInt64]) {
        for id in numbers.map({ TrackID($0) }) {
            if let (_, info) = room.published(id) { trackNames.note(id, info.sid) }
        }
    }

    /// When the room has something to do by itself.
    var nextDeadline: MonotonicTime {
        let next = knownDeadline ?? room.nextDeadline
        knownDeadline = next
        return next
    }

    /// The number of the current event; the first has number 1.
    func nextEvent() -> UInt64 {
        lastEvent += 1
        return lastEvent
    }

    /// Whether a join that is refused now is logged: one per second for each code.
    func mayWriteRefusal(_ code: RoomError.Code, at now: MonotonicTime) -> Bool {
        Self.isDue(code, in: &refusals, at: now)
    }

    /// The same for a publication.
    func mayWriteRefusal(ofPublication code: RoomError.Code, at now: MonotonicTime) -> Bool {
        Self.isDue(code, in: &publicationRefusals, at: now)
    }

    private static func isDue(
        _ code: RoomError.Code, in last: inout [RoomError.Code: MonotonicTime], at now: MonotonicTime
    ) -> Bool {
        if let last = last[code], now - last < .seconds(1) { return false }
        last[code] = now
        return true
    }
}
