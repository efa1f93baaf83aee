import PeerTransport
import Primitives

/// Maps a datagram to its peer, by its source address or by the user name fragment of a check.
struct Whereabouts: ~Copyable {
    /// The outcome for a datagram whose source address does not suffice.
    enum Finding {
        case peer(Int)
        case dropped(DropReason)
    }

    private let configuration: EngineConfiguration
    private(set) var addresses: FlatTable<SocketAddress>
    /// Peers that have sent checks from another peer's address and have not answered the server's check there yet.
    private var contenders: FlatTable<SocketAddress>
    private(set) var ufrags = FlatTable<UInt64>()
    private var unknownSources: UnknownSourceLimits
    /// Packets of media from unknown addresses that were tried.
    private var unknownMedia = RateLimit()
    /// Where the next such packet begins the search for its peer, so that the peers of one host take turns if there are more of them than are tried at a time.
    private var nextTried = 0

    /// Such packets are tried 100 times per second for all peers together: a single peer that was assigned another port sends as many, and one packet is
    /// enough.
    private static let unknownMediaInterval = TimeSpan.milliseconds(10)
    private static let unknownMediaAtOnce = 20
    /// Maximum peers for which one packet is tried: a household, or a part of an office, whose other peers are tried with the next packet. Each costs a
    /// microsecond.
    private static let mostTried = 16

    /// The tables' hashes are seeded, so that an attacker who picks addresses cannot make them collide.
    init(configuration: EngineConfiguration, random: inout RandomSource) {
        self.configuration = configuration
        addresses = FlatTable(capacity: 32, seed: random.next())
        contenders = FlatTable(seed: random.next())
        unknownSources = UnknownSourceLimits(seed: random.next())
    }

    /// The peer to which datagrams from `address` belong.
    @inline(__always) func owner(of address: SocketAddress) -> Int? { addresses[address] }

    /// Finds the peer for a datagram from an unknown address: only a STUN check with a known user name fragment is processed,
    /// and only a limited number per second: see `UnknownSourceLimits`.
    mutating func find(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, in tables: borrowing Tables,
        at now: MonotonicTime
    ) -> Finding {
        guard configuration.admits(source),
            let range = TransportPeek.localUfrag(of: UnsafeRawBufferPointer(datagram).bytes)
        else { return .dropped(.unknownSource) }
        guard let index = ufrags[UfragKey.of(datagram, range)] else { return .dropped(.stunUnknownUfrag) }
        guard
            unknownSources.admit(
                source, for: index, own: &tables.peers[index].pointee.unknownSources,
                limit: configuration.unknownSourceChecksPerSecond, at: now)
        else { return .dropped(.stunThrottled) }
        return .peer(index)
    }

    /// The peers that media from an unknown address may come from: those at the same host from which nothing has arrived for a moment. A NAT may have assigned
    /// one of them another port.
    mutating func remappingCandidates(
        for source: SocketAddress, in tables: borrowing Tables, at now: MonotonicTime
    ) -> [Int] {
        guard !source.isTCP, configuration.admits(source),
            unknownMedia.accept(every: Self.unknownMediaInterval, atOnce: Self.unknownMediaAtOnce, at: now)
        else { return [] }
        return addresses.values(atMost: Self.mostTried, from: &nextTried) { address, peer in
            address.low == source.low && address.high == source.high && !address.isTCP
                && tables.peers[peer].pointee.transport.mayBeRemapped(from: address, at: now)
        }
    }

    /// Finds the peer for a datagram that `owner` cannot use because of `reason`: a check for another's user name, or the answer to another's check.
    /// A forged check is recorded against its source.
    mutating func findAnother(
        than owner: Int, for datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress,
        because reason: DropReason, in tables: borrowing Tables, at now: MonotonicTime
    ) -> Finding {
        switch reason {
        case .stunUnknownUfrag:
            let finding = find(datagram, from: source, in: tables, at: now)
            guard case .peer(owner) = finding else { return finding }
        case .stunUnexpected:
            if let other = contenders[source], other != owner { return .peer(other) }
        case .stunUnauthorized:
            if addresses[source] != owner { unknownSources.failed(source, for: owner, at: now) }
        default: break
        }
        return .dropped(reason)
    }

    /// A peer has sent a valid check from `address`. If the address belongs to another, the peer must answer the server's check first:
    /// otherwise anyone who can forge a source address could take over another peer's datagrams.
    mutating func claim(_ address: SocketAddress, for peer: Int) {
        if let owner = addresses[address], owner != peer {
            contenders.set(address, to: peer)
        } else {
            addresses.set(address, to: peer)
        }
    }

    /// A peer has answered the server's check from `address`: returns the former owner, which no longer has it.
    mutating func assign(_ address: SocketAddress, to peer: Int) -> Int? {
        if contenders[address] == peer { contenders.remove(address) }
        guard let owner = addresses[address], owner != peer else { return nil }
        addresses.set(address, to: peer)
        return owner
    }

    /// The address no longer belongs to the peer. A peer that contends for it becomes its owner, because there is no owner left to contend with.
    mutating func release(_ address: SocketAddress, of peer: Int) {
        let contender = contenders[address]
        if contender == peer || addresses[address] == peer { contenders.remove(address) }
        guard addresses[address] == peer else { return }
        if let contender, contender != peer {
            addresses.set(address, to: contender)
        } else {
            addresses.remove(address)
        }
    }

    /// The address does not exist any more; returns the peers that it belonged to, or whose check is still unanswered there.
    mutating func end(_ address: SocketAddress) -> [Int] {
        let peers = [addresses[address], contenders[address]].compactMap { $0 }
        addresses.remove(address)
        contenders.remove(address)
        return peers
    }

    // MARK: - User name fragments

    /// Assigns a user name fragment to a peer; false if another has it.
    mutating func add(ufrag key: UInt64, of peer: Int) -> Bool {
        guard ufrags[key] == nil else { return false }
        ufrags.set(key, to: peer)
        return true
    }

    mutating func remove(ufrag key: UInt64) { ufrags.remove(key) }
}

/// A user name fragment as one word. The server generates them, so no client chooses what collides; and the transport rejects a check with the
/// wrong password in any case.
enum UfragKey {
    /// FNV-1a, 64 bits.
    static func of(_ bytes: [UInt8]) -> UInt64 {
        bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
    }

    /// The same over `range` of a datagram.
    static func of(_ datagram: UnsafeMutableRawBufferPointer, _ range: Range<Int>) -> UInt64 {
        var key: UInt64 = 0xcbf2_9ce4_8422_2325
        for index in range { key = (key ^ UInt64(datagram[index])) &* 0x0000_0100_0000_01b3 }
        return key
    }
}
