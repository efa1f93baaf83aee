/// The bodies that have arrived in part. If there are too many, the one that has taken the longest is aborted; a body that arrives in one piece is never
/// here.
///
/// Those of authenticated clients are counted separately: no other client can displace them.
struct UnfinishedBodies {
    private var known: Stage
    private var unknown: Stage

    init(_ configuration: HTTPServerConfiguration) {
        known = Stage(limit: configuration.maximumBodies, limitPerAddress: configuration.maximumBodiesPerAddress)
        unknown = Stage(
            limit: configuration.maximumUnknownBodies, limitPerAddress: configuration.maximumUnknownBodiesPerAddress)
    }

    func contains(_ id: UInt64) -> Bool { known.contains(id) || unknown.contains(id) }

    /// Adds the body of connection `id`; returns the connections that must be aborted for it, with the limit that each of them exceeds.
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
