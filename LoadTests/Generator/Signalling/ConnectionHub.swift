import CLoadIO
import Cryptography
import MediaControl
import Synchronization

/// Turns descriptions from drivers into connections of the media threads.
final class ConnectionHub: Sendable {
    let fingerprint: [UInt8]
    private let threads: [MediaThreadHandle]
    private let measuresSilence: Bool
    private let nextID = Atomic<Int>(1)

    init(threads: [MediaThreadHandle], fingerprint: [UInt8], measuresSilence: Bool = false) {
        self.measuresSilence = measuresSilence
        self.threads = threads
        self.fingerprint = fingerprint
    }

    /// A place and credentials for a future connection of `peer`.
    func makeLocal(for peer: PeerSpec) -> LocalSide {
        LocalSide(ice: Offered.credentials(), fingerprint: fingerprint, place: thread(of: peer.room).takePlace())
    }

    /// An offer for a future connection of `peer`.
    func makeOffer(_ offered: OfferedMedia, for peer: PeerSpec) -> LocalSide {
        LoadGenerator.makeOffer(offered, peer.videoCodec, from: makeLocal(for: peer), name: peer.identity)
    }

    /// Opens the connection that both descriptions have negotiated.
    func open(_ local: LocalSide, _ remote: RemoteSide, for peer: PeerSpec, since: Int64) -> ConnectionID {
        let id = ConnectionID(nextID.add(1, ordering: .relaxed).oldValue)
        var sends = local.sends
        for index in sends.indices {
            if sends[index].kind == .audio { sends[index].burst = peer.audioBurstNanoseconds }
            adopt(remote, peer.videoCodec, &sends[index])
        }
        let plan = ConnectionPlan(
            id: id, place: local.place, room: peer.room, startedAt: since, localICE: local.ice, remoteICE: remote.ice,
            fingerprintSHA256: remote.fingerprint, destination: remote.destination,
            isDTLSClient: remote.setup != "active", sends: sends, receives: remote.receives,
            extensions: remote.extensions, verifies: peer.verifies, decodes: peer.decodes,
            expectsVideo: peer.receivesVideo, link: peer.link,
            participant: measuresSilence && peer.receives ? "\(peer.room)/\(peer.identity)" : "")
        thread(of: peer.room).post(.open(plan))
        return id
    }

    /// The server may have chosen other numbers for the codecs than were offered, or omitted retransmissions.
    private func adopt(_ remote: RemoteSide, _ codec: VideoCodec, _ send: inout SendPlan) {
        let wanted: ReceivedFormat = send.kind == .audio ? .opus : codec.format
        if remote.receives[send.payloadType] != wanted, let other = remote.receives.first(where: { $0.value == wanted })
        {
            send.payloadType = other.key
        }
        let payloadType = send.payloadType
        send.rtxPayloadType = remote.receives.first { $0.value == .rtx(of: payloadType) }?.key
    }

    /// Updates a connection after a renegotiation.
    func update(_ id: ConnectionID, _ remote: RemoteSide, for peer: PeerSpec) {
        thread(of: peer.room).post(.update(id, receives: remote.receives, extensions: remote.extensions))
    }

    func close(_ id: ConnectionID, of peer: PeerSpec) { thread(of: peer.room).post(.close(id)) }

    /// All of one room is played by one thread: publishers' ledgers are read without locks.
    private func thread(of room: String) -> MediaThreadHandle {
        var hash: UInt32 = 0x811c_9dc5
        for byte in room.utf8 { hash = (hash ^ UInt32(byte)) &* 0x0100_0193 }
        return threads[Int(hash % UInt32(threads.count))]
    }

    static func now() -> Int64 { loadio_monotonic() }
}
