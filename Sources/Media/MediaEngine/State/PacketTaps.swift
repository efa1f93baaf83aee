import MediaControl
import PeerTransport
import Primitives

/// The peers whose packets are captured.
struct PacketTaps {
    /// Maximum peers that are captured at once: their memory is bounded, whatever the control plane requests.
    private static let maximum = 64

    /// By peer; kept for a removed peer until its capture is stopped.
    private var taps: [PeerID: PacketTap] = [:]

    /// Begins or (nil) stops to copy a peer's packets. A peer that is removed frees its path, and so the path's reference to the tap, before the tap.
    mutating func set(_ settings: CaptureSettings?, of id: PeerID, in tables: borrowing Tables) -> Bool {
        let peer = tables.peerIndex[id.rawValue].map { tables.peers[$0] }
        guard let settings else {
            peer?.pointee.media.pointee.tap = nil
            return taps.removeValue(forKey: id) != nil
        }
        guard let peer, taps[id] == nil, taps.count < Self.maximum else { return false }
        let tap = PacketTap(settings)
        taps[id] = tap
        peer.pointee.media.pointee.tap = Unmanaged.passUnretained(tap)
        return true
    }

    /// The packets of these peers copied since the last call.
    func drain(of ids: [PeerID]) -> [CapturedPackets] { ids.compactMap { id in taps[id]?.drain(of: id) } }
}
