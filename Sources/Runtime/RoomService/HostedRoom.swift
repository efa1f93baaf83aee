import Cryptography
import MediaControl
import Primitives
import Rooms

/// A room and the worker that has its media. Touched by the service's actor only.
final class HostedRoom {
    var room: Room { didSet { knownDeadline = nil } }
    /// The room's next deadline; nil: it has changed since that was looked for, which goes through all of its members.
    private var knownDeadline: MonotonicTime?
    let worker: WorkerIndex
    /// The rules below the room's own document: the server's defaults with the preset above them.
    let base: RoomPolicy
    let preset: String?
    /// Its worker has carried out commands of it.
    var hasWorked = false
    /// Whose pre-call check it serves.
    let checker: ClientMark?
    /// It serves a pre-call check: no list, event, or summary mentions it.
    var isCheck: Bool { checker != nil }
    /// What the room itself says about its rules.
    var document: PolicyDocument
    /// What a join has to know where the room asks for a password.
    private(set) var password: PasswordHash?
    /// Changes with the password, so that a check that took its time notices.
    private(set) var lockRevision = 0
    /// Who left a short while ago and may come back.
    var recentMembers = RecentMembers()
    /// What is remembered of stays that last.
    var stays = StayLog()
    private(set) var trackNames = TrackNames()
    /// The last hour of the room, its tracks and its subscriptions.
    var streams = StreamLog()
    /// The number of the room's last event.
    private var lastEvent: UInt64 = 0
    /// When a refused join was last written down, by code: a crowd before a full room must not fill the log.
    private var refusals: [RoomError.Code: MonotonicTime] = [:]
    /// The same of refused publications.
    private var publicationRefusals: [RoomError.Code: MonotonicTime] = [:]
    /// As counted in the service's sum.
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

    /// What a command to the worker means for who has what.
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

    /// A participant came from another room, with peers and tracks of these numbers: its tracks are not added anew.
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

    /// The number of the event that happens now; the first has number 1.
    func nextEvent() -> UInt64 {
        lastEvent += 1
        return lastEvent
    }

    /// Whether a join that is refused now is written down: one in a second for each code.
    func mayWriteRefusal(_ code: RoomError.Code, at now: MonotonicTime) -> Bool {
        Self.isDue(code, in: &refusals, at: now)
    }

    /// The same of a publication.
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
