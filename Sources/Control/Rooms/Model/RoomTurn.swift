public import MediaControl
public import Primitives

/// An action that a room requests. Effects are carried out in their order.
public enum RoomEffect: Sendable, Hashable {
    /// For the worker that hosts the room.
    case media(MediaCommand)
    /// One message for several members, over their data channels. `source`: the peer that sent it on one, if its rate can be limited.
    case send(RoomMessage, to: [MessageReceiver], source: PeerID?)
    /// For one session.
    case notify(SessionID, SequencedEvent)
    /// The session has ended; `.ended` was its last event.
    case sessionEnded(SessionID, LeaveReason)
    /// For the recorder.
    case recording(RecordingEffect)
    /// For the player.
    case playback(PlaybackEffect)
    /// For the event log.
    case log(RoomLogEvent)
    /// A stay, named by the participant's sid, has reached a step for the first time.
    case joinStep(participant: String, JoinStep)
    /// A participant's client has reported this many more freezes of a video that it plays; perhaps none.
    case freezesReported(participant: String, Freezes)
    /// The room has ended: remove it.
    case roomEnded
}

/// A member's data channel.
public struct MessageReceiver: Sendable, Hashable {
    public var peer: PeerID
    public var label: String
    public var `protocol`: DataProtocol

    /// The channel `label` of a peer that uses `protocol`.
    public init(peer: PeerID, label: String, `protocol`: DataProtocol) {
        self.peer = peer
        self.label = label
        self.protocol = `protocol`
    }
}

/// The input and output of one step of a room: time and randomness go in, effects come out. The same room, time and random numbers give the same effects.
public struct RoomTurn {
    /// The time of the step.
    public let now: MonotonicTime
    /// Milliseconds since 1970, for display.
    public let wallClock: Int64
    /// What is to be done, in order.
    public internal(set) var effects: [RoomEffect] = []
    /// Peer connections that the server can still open besides those that are reserved.
    public private(set) var connectionsLeft: Int
    /// How many more tracks the server can record.
    public private(set) var recordingAdmission: RecordingAdmission
    /// The source of ids, SSRCs and credentials; outside tests, a generator fit for secrets.
    public private(set) var random: any RandomNumberGenerator

    /// A step at `now`.
    public init(
        at now: MonotonicTime, wallClock: Int64, random: any RandomNumberGenerator, connectionsLeft: Int = .max,
        recordingAdmission: RecordingAdmission = RecordingAdmission()
    ) {
        self.now = now
        self.wallClock = wallClock
        self.random = random
        self.connectionsLeft = connectionsLeft
        self.recordingAdmission = recordingAdmission
    }

    /// Reserves the place of a recorded track on this server, or returns why there is none.
    mutating func reserveRecordedTrack() -> RecordingRefusal? { recordingAdmission.reservePlace() }

    /// Ends the recording of a track. Its place is free for another one in this step; the recorder, which must finish the file, counts it a moment longer.
    mutating func endRecordedTrack(_ stream: SubscriptionID) {
        media(.endRecording(stream))
        recordingAdmission.returnPlace()
    }

    /// Reserves peer connections of the server, or refuses.
    mutating func reserveConnections(_ count: Int) throws(RoomError) {
        guard connectionsLeft >= count else {
            throw RoomError(
                .overloaded, "the server has no memory for another peer connection", retryAfter: .seconds(10))
        }
        connectionsLeft -= count
    }

    /// The time at which the wall clock shows `second` (since 1970): now if that is past, and at most a century from now.
    func moment(ofSecond second: Int64) -> MonotonicTime {
        let seconds = min(max(second, 0), wallClock / 1_000 + Self.centurySeconds)
        return now + .milliseconds(max(seconds * 1_000 - wallClock, 0))
    }

    private static let centurySeconds: Int64 = 100 * 365 * 86_400

    mutating func media(_ command: MediaCommand) { effects.append(.media(command)) }
    mutating func recording(_ effect: RecordingEffect) { effects.append(.recording(effect)) }
    mutating func log(_ event: RoomLogEvent) { effects.append(.log(event)) }
}

extension RoomTurn {
    /// Random letters and digits; each carries 5.95 bits.
    mutating func text(_ count: Int) -> String { RandomText.text(count, using: &random) }

    /// A public id such as `PA_k3J…`: 71 bits, enough for the life of the process.
    mutating func sid(_ prefix: String) -> String { prefix + text(12) }

    /// An id that is also a secret: 131 bits.
    mutating func sessionID() -> SessionID { SessionID("SE_" + text(22)) }

    /// A user name fragment of 71 bits after the worker's mark, because it identifies a peer among all peers of a worker, and a password of 143.
    mutating func iceCredentials(_ context: RoomContext) -> ICECredentials {
        ICECredentials(ufrag: context.ufragMark + text(12), password: text(24))
    }

    /// Any SSRC except 0 and those in use.
    mutating func ssrc(unless isTaken: (UInt32) -> Bool = { _ in false }) -> UInt32 {
        while true {
            let value = UInt32.random(in: 1...UInt32.max, using: &random)
            if !isTaken(value) { return value }
        }
    }

    mutating func sdpSessionID() -> UInt64 { UInt64.random(in: 1..<(1 << 62), using: &random) }
}
