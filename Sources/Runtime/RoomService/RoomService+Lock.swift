import AccessTokens
import Cryptography
import Primitives
public import Rooms

// Locks and passwords. Checks are slow and happen outside of the actor; what they were made for is looked at again afterwards.

extension RoomService {
    /// The longest password, in characters as JSON Schema counts them: Unicode code points. Hashing takes time in proportion.
    static let maximumPasswordLength = 256

    /// Locks a room for newcomers: without a password for all but moderators, with one for who does not bring it. Members stay.
    ///
    /// `session` is who does so (nil: an operator); `permission_denied` where the room's policy does not let it.
    @discardableResult
    public func lock(
        room name: String, password: String?, by session: SessionID? = nil
    ) async throws(RoomError) -> RoomInfo {
        let hosted = try hosted(named: name)
        guard let password else { return try await setLock(.closed, nil, hosted, session) }
        do throws(RoomError) {
            // Before the work, so that nobody makes the server hash who may not lock.
            try hosted.room.checkLockRight(of: session)
            guard !password.isEmpty, password.unicodeScalars.count <= Self.maximumPasswordLength else {
                throw RoomError(.invalidRequest, "a password must have 1 to \(Self.maximumPasswordLength) characters")
            }
        } catch {
            throw counted(error)
        }
        guard let hash = await passwords.hash(password) else { throw counted(.tooManyPasswords) }
        guard rooms[name] === hosted else { throw counted(RoomError(.roomNotFound, "there is no such room")) }
        return try await setLock(.password, hash, hosted, session)
    }

    /// Lets everybody with a token in again.
    @discardableResult
    public func unlock(room name: String, by session: SessionID? = nil) async throws(RoomError) -> RoomInfo {
        try await setLock(.open, nil, try hosted(named: name), session)
    }

    /// The room that a session is in.
    public func room(of session: SessionID) throws(RoomError) -> String { try hosted(of: session).room.name }

    private func setLock(
        _ lock: RoomLock, _ hash: PasswordHash?, _ hosted: HostedRoom, _ session: SessionID?
    ) async throws(RoomError) -> RoomInfo {
        try await step(hosted) { (room, turn) throws(RoomError) in
            try room.setLock(lock, by: session, turn: &turn)
            hosted.password = hash
            hosted.lockRevision += 1
            return room.info
        }
    }

    /// Refuses a join that the room's lock keeps out. Returns in the moment at which it is known: the caller joins without waiting for anything else.
    func checkLock(_ request: JoinRequest) async throws(RoomError) {
        // As often as somebody changes the password meanwhile, but not for ever.
        for _ in 0..<8 {
            guard let name = lockedRoom(request), let hosted = rooms[name] else { return }
            guard hosted.room.lock == .password, let hash = hosted.password else {
                throw counted(RoomError(.roomLocked, "the room is locked"))
            }
            guard let password = request.password else {
                throw counted(RoomError(.passwordRequired, "the room asks for a password"))
            }
            guard password.unicodeScalars.count <= Self.maximumPasswordLength else {
                throw counted(RoomError(.passwordWrong, "the password is not the room's"))
            }
            let revision = hosted.lockRevision
            let source = PasswordDoor.Source(address: request.address, room: name)
            let media = media
            let outcome = await passwords.check(password, hash, from: source, now: { media.now() })
            guard rooms[name] === hosted, hosted.lockRevision == revision else { continue }
            switch outcome {
            case .right: return
            case .wrong: throw counted(RoomError(.passwordWrong, "the password is not the room's"))
            case .tooMany(let wait):
                throw counted(
                    RoomError(.tooManyAttempts, "too many wrong passwords; try again later", retryAfter: wait))
            case .overloaded: throw counted(.tooManyPasswords)
            }
        }
        throw counted(.tooManyPasswords)
    }

    /// The locked room that a join goes to; nil where it goes to none, or to one that its bearer moderates.
    private func lockedRoom(_ request: JoinRequest) -> String? {
        let granted = request.claims.video.room.flatMap { $0.isEmpty ? nil : $0 }
        let name = granted ?? request.room ?? configuration.defaultRoom
        guard let room = rooms[name]?.room, room.lock != .open, !request.claims.video.roomAdmin else { return nil }
        return name
    }
}

extension RoomError {
    fileprivate static let tooManyPasswords = RoomError(
        .overloaded, "too many passwords are being checked", retryAfter: .seconds(3))
}
