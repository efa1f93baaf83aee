import MediaControl
import PeerTransport
import Primitives

extension MediaEngine {
    /// Peers that are captured at once: their memory is bounded, whatever the control plane asks for.
    private static let maximumTaps = 64

    /// Begins or (nil) stops to copy a peer's packets. A peer that is removed frees its path, and so the path's reference to the tap, before the tap.
    func setCapture(_ settings: CaptureSettings?, of id: PeerID) -> Bool {
        let peer = tables.peerIndex[id.rawValue].map { tables.peers[$0] }
        guard let settings else {
            peer?.pointee.media.pointee.tap = nil
            return taps.removeValue(forKey: id) != nil
        }
        guard let peer, taps[id] == nil, taps.count < Self.maximumTaps else { return false }
        let tap = PacketTap(settings)
        taps[id] = tap
        peer.pointee.media.pointee.tap = Unmanaged.passUnretained(tap)
        return true
    }
}
