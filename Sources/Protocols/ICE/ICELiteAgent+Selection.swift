internal import Primitives

extension ICELiteAgent {
    /// A check was answered with success: the address is the peer's, and a nomination moves the peer there.
    ///
    /// The newest nomination wins. Browsers nominate only the pair they use (regular nomination), or all pairs while
    /// they connect (aggressive, RFC 5245) and then keep checking the one they use.
    mutating func noteCheck(from source: SocketAddress, nominates: Bool, at now: MonotonicTime) {
        if !isValidated(source) { validate(source, at: now) }
        noteSignOfLife(from: source, at: now)
        if nominates, source != selected { select(source, at: now) }
    }

    /// Something authentic came from a validated address. When the selected one has gone silent the peer has moved
    /// without a nomination: its NAT gave it another port.
    mutating func noteSignOfLife(from source: SocketAddress, at now: MonotonicTime) {
        lastSignOfLife = now
        if source == selected {
            selectedSeen = now
            return
        }
        guard let index = tuples.firstIndex(where: { $0.address == source }) else { return }
        tuples[index].lastSeen = now
        if selected != nil, now - selectedSeen >= Self.silenceBeforeFollowing { select(source, at: now) }
    }

    private mutating func validate(_ source: SocketAddress, at now: MonotonicTime) {
        if tuples.count == Self.maximumTuples { releaseOldest() }
        tuples.append(Tuple(address: source, lastSeen: now))
        tell(.validated(source))
    }

    private mutating func select(_ source: SocketAddress, at now: MonotonicTime) {
        if let old = selected, let index = tuples.firstIndex(where: { $0.address == old }) {
            tuples[index].lastSeen = selectedSeen
        }
        selected = source
        selectedSeen = now
        setupDeadline = .distantFuture
        // The new address proves itself to the server's own check at once, and the round trip time is known.
        nextCheck = now
        tell(.selected(source, isMove: settledAt.map { now >= $0 } ?? false))
        settledAt = settledAt ?? now + Self.settlingTime
    }

    private mutating func releaseOldest() {
        let others = tuples.indices.filter { tuples[$0].address != selected }
        guard let index = others.min(by: { tuples[$0].lastSeen < tuples[$1].lastSeen }) else { return }
        tell(.released(tuples.remove(at: index).address))
    }

    /// Addresses that have been silent for the lifetime of consent go.
    mutating func releaseSilent(at now: MonotonicTime) {
        for index in tuples.indices.reversed()
        where tuples[index].address != selected && now - tuples[index].lastSeen >= Self.tupleLifetime {
            tell(.released(tuples.remove(at: index).address))
        }
    }
}
