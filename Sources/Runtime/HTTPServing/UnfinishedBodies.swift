/// The bodies that have come in part. Where there are too many, the one that has taken the longest makes room; whoever sends a body in one go is never
/// here.
///
/// Those of clients that have shown who they are stand apart: nobody who has not can take their room.
struct UnfinishedBodies {
    private var known: Stage
    private var unknown: Stage

    init(_ configuration: HTTPServerConfiguration) {
        known = Stage(limit: configuration.maximumBodies, limitPerAddress: configuration.maximumBodiesPerAddress)
        unknown = Stage(
            limit: configuration.maximumUnknownBodies, limitPerAddress: configuration.maximumUnknownBodiesPerAddress)
    }

    func contains(_ id: UInt64) -> Bool { known.contains(id) || unknown.contains(id) }

    /// Adds the body of connection `id`; the connections that make room for it, with the bound that each of them stands for.
    mutating func enter(_ id: UInt64, of address: UInt64, isKnown: Bool) -> [(id: UInt64, limit: HTTPLimit)] {
        isKnown ? Self.enter(id, of: address, &known) : Self.enter(id, of: address, &unknown)
    }

    mutating func leave(_ id: UInt64) {
        known.leave(id)
        unknown.leave(id)
    }

    private static func enter(
        _ id: UInt64, of address: UInt64, _ stage: inout Stage
    ) -> [(id: UInt64, limit: HTTPLimit)] {
        var displaced: [(id: UInt64, limit: HTTPLimit)] = []
        if stage.isFull(for: address), let oldest = stage.oldest(of: address) {
            stage.leave(oldest)
            displaced.append((oldest, .addressBodies))
        }
        if stage.isFull, let oldest = stage.oldest() {
            stage.leave(oldest)
            displaced.append((oldest, .bodies))
        }
        stage.enter(id, address)
        return displaced
    }
}
