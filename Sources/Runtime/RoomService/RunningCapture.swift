import MediaControl
import PacketCapture
import Primitives
import Rooms

/// One capture: the packets copied so far, and when it ends. Used only by the service's actor.
final class RunningCapture {
    private(set) var info: CaptureInfo
    /// The room that `info` names.
    let roomSID: String
    /// The worker that has the packets.
    let worker: WorkerIndex
    /// Its room serves a pre-call check.
    let isOfCheck: Bool
    private let maxBytes: Int
    private var endsAt: MonotonicTime
    /// nil: it is running.
    private(set) var endedAt: MonotonicTime?
    /// The wall clock's time when the monotonic clock was zero, in nanoseconds since 1970. Read once: the wall clock may be set during a capture, and has only
    /// milliseconds, which would show between the packets of two fetches.
    private let wallClockBase: Int64
    /// Its participant was moved to another room before it was over.
    private(set) var isOfMoved = false
    private var file: CaptureFile
    /// The participant's connections in the order in which they were found, which determines their ports in the file.
    private(set) var peers: [PeerID] = []
    private var isEndClaimed = false

    init(
        _ request: CaptureRequest, of participant: ParticipantInfo, in hosted: HostedRoom, id: String,
        at now: MonotonicTime, wallClock: Int64
    ) {
        let room = hosted.room.name
        roomSID = hosted.room.sid
        worker = hosted.worker
        isOfCheck = hosted.isCheck
        info = CaptureInfo(
            id: id, room: room, participant: participant.sid, identity: participant.identity,
            keepsPayload: request.keepsPayload, startedAt: wallClock,
            until: wallClock + request.duration.nanoseconds / 1_000_000, by: request.by, packets: 0, bytes: 0,
            dropped: 0)
        maxBytes = request.maxBytes
        endsAt = now + request.duration
        wallClockBase = wallClock * 1_000_000 - now.nanoseconds
        file = CaptureFile(
            application: "martlet",
            comment:
                "RTP and RTCP of \(participant.identity) in room \(room), decrypted by the server; addresses are made up; "
                + (request.keepsPayload ? "with payloads" : "RTP payloads are cut off"))
    }

    var notice: CaptureNotice {
        CaptureNotice(
            id: info.id, isActive: info.end == nil, keepsPayload: info.keepsPayload, until: info.until, by: info.by)
    }

    /// The participant was moved: its packets from now on belong to another room, whose moderators did not request this capture.
    func participantMoved(at now: MonotonicTime) {
        guard now < endsAt else { return }
        (endsAt, isOfMoved) = (now, true)
    }

    /// Adds a connection; false if it is known.
    func add(_ peer: PeerID) -> Bool {
        guard !peers.contains(peer) else { return false }
        peers.append(peer)
        return true
    }

    /// Adds copied packets, oldest first, and determines whether the capture has ended. `wallClock` is the time in milliseconds since 1970.
    func add(_ captured: [CapturedPackets], at now: MonotonicTime, wallClock: Int64) {
        guard info.end == nil else { return }
        var packets: [(connection: Int, packet: CapturedPackets.Packet)] = []
        for one in captured {
            info.dropped += one.dropped
            guard let connection = peers.firstIndex(of: one.peer) else { continue }
            one.forEach { packets.append((connection, $0)) }
        }
        packets.sort { $0.packet.time < $1.packet.time }
        for (connection, packet) in packets {
            guard packet.time < endsAt else { continue }
            guard file.bytes.count + CaptureFile.size(keeping: packet.bytes.count) <= maxBytes else {
                info.dropped += 1
                end(.size, at: now, wallClock: wallClock)
                break
            }
            file.append(
                CaptureFile.Packet(
                    time: wallClockBase + packet.time.nanoseconds, isSent: packet.isSent, isRTCP: packet.isRTCP,
                    connection: connection, length: packet.length), kept: packet.bytes)
        }
        if info.end == nil, now >= endsAt { end(isOfMoved ? .left : .duration, at: now, wallClock: wallClock) }
        info.packets = file.packets
        info.bytes = file.bytes.count
    }

    /// Nothing is added from now on.
    func end(_ reason: CaptureInfo.End, at now: MonotonicTime, wallClock: Int64) {
        guard info.end == nil else { return }
        info.end = reason
        endedAt = now
        file.finish(dropped: info.dropped, time: wallClock * 1_000_000)
        info.packets = file.packets
        info.bytes = file.bytes.count
    }

    /// Whether the caller is to report the end: only the first one after it is. Several tasks notice that a capture has ended, each after it waited for a
    /// worker.
    func claimEnd() -> Bool {
        guard info.end != nil, !isEndClaimed else { return false }
        isEndClaimed = true
        return true
    }

    /// The file; without its end while the capture is running.
    var bytes: [UInt8] { file.bytes }
}
