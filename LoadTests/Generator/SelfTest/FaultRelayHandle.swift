import Cryptography
import MediaControl
import SDP
import Synchronization

/// The self-test's handle of the relay, and the driver that joins peers to it.
final class FaultRelayHandle: SignallingDriver {
    /// A member to come.
    struct Entry: Sendable {
        var localICE: ICECredentials
        var remoteICE: ICECredentials
        var fingerprint: [UInt8]
        var publishes: Bool
    }

    struct State: Sendable {
        var port: UInt16 = 0
        var plan = FaultPlan()
        var log = FaultLog()
        var entries: [Entry] = []
        var isStopped = false
    }

    private let state = Mutex(State())
    let certificate: Certificate
    private let peerFingerprint: [UInt8]

    init(certificate: Certificate, peerFingerprint: [UInt8]) {
        self.certificate = certificate
        self.peerFingerprint = peerFingerprint
    }

    var isStopped: Bool { state.withLock { $0.isStopped } }
    var plan: FaultPlan { state.withLock { $0.plan } }
    var port: UInt16 { state.withLock { $0.port } }
    var log: FaultLog { state.withLock { $0.log } }

    func update(_ change: (inout State) -> Void) { state.withLock { change(&$0) } }

    func takeMembers() -> [Entry] {
        state.withLock { state in
            defer { state.entries = [] }
            return state.entries
        }
    }

    func join(_ peer: PeerSpec, hub: ConnectionHub) async throws(LoadError) -> any JoinedPeer {
        let since = ConnectionHub.now()
        let offered =
            peer.sends
            ? OfferedMedia(sendsAudio: peer.sendsAudio, videoLayers: peer.videoLayers)
            : OfferedMedia(receivesAudio: peer.receivesAudio, receivesVideo: peer.receivesVideo)
        let offer = hub.makeOffer(offered, for: peer)
        let own = Offered.credentials()
        update {
            $0.entries.append(
                Entry(localICE: own, remoteICE: offer.ice, fingerprint: peerFingerprint, publishes: peer.sends))
        }
        let id = hub.open(offer, try RemoteSide(answer(to: offer.sdp, own)), for: peer, since: since)
        return RelayPeer(id: id, peer: peer, hub: hub)
    }

    /// The offer with this side's transport in it, and without header extensions.
    private func answer(to offer: String, _ ice: ICECredentials) -> String {
        offer.split(separator: "\r\n").flatMap { line -> [String] in
            if line.hasPrefix("a=ice-ufrag:") { return ["a=ice-ufrag:\(ice.ufrag)"] }
            if line.hasPrefix("a=ice-pwd:") { return ["a=ice-pwd:\(ice.password)"] }
            if line.hasPrefix("a=fingerprint:") {
                return ["a=fingerprint:\(Fingerprint.text(sha256: certificate.fingerprintSHA256))"]
            }
            if line.hasPrefix("a=setup:") {
                return ["a=setup:passive", "a=candidate:1 1 udp 2130706431 127.0.0.1 \(port) typ host"]
            }
            let isForeign = line.hasPrefix("a=extmap:") || line.hasPrefix("a=candidate:")
            return isForeign ? [] : [String(line)]
        }.joined(separator: "\r\n") + "\r\n"
    }
}

private struct RelayPeer: JoinedPeer {
    let id: ConnectionID
    let peer: PeerSpec
    let hub: ConnectionHub

    func leave() async { hub.close(id, of: peer) }
}
