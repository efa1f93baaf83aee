import PayloadFormats
import Primitives

extension Subscription {
    /// A picture has seldom more packets than this on either side of one that is missing; those further away are not looked at.
    private static var reach: Int64 { 16 }

    /// Whether a packet that comes late belongs to a picture that was left out with its layer: a part of it must not follow then, as the
    /// receiver would wait for the rest.
    ///
    /// While it was missing nobody knew whose it was, so a number was left for it.
    func wasLeftOut(
        _ sequence: Int64, _ record: UnsafePointer<PacketRecord>, of layer: UnsafeMutablePointer<ReceiveLayer>
    ) -> Bool {
        let summary = record.pointee.summary
        if summary.spatialLayer > Int(selector.spatialCap) { return true }
        guard summary.temporalLayer > 0 else { return false }
        for distance in 1...Self.reach {
            for other in [sequence - distance, sequence + distance] {
                guard let neighbour = layer.pointee.history.record(other),
                    neighbour.pointee.timestamp == record.pointee.timestamp
                else { continue }
                guard let range = ranges.find(layer: UInt8(layer.pointee.index), source: other) else { return true }
                // What was sent of a picture is completed. A neighbour that came late itself says nothing.
                if let place = ring.place(sentPacket(other, in: range.pointee).sequence) {
                    return place.pointee.flags.contains(.filler)
                }
            }
        }
        return summary.temporalLayer > Int(selector.temporal.cap)
    }
}
