public import Cryptography
import Forwarding
public import MediaControl
import PeerTransport
public import Primitives

/// All peers, tracks and subscriptions of one worker: datagrams, commands and time in; datagrams and events out.
///
/// One turn of the worker's loop:
/// ```text
/// receive(…) for every waiting datagram         only transport replies are added to the batch
/// apply(…) for every command                    likewise
/// advance(to:into:) when nextDeadline is due    } while needsFlush: send the batch, empty it,
/// endTurn(at:into:)                             } call again
/// send the batch, empty it; take the events; sleep until nextDeadline
/// ```
/// Before each `receive` and `apply` the batch must have room for `transportReserve` bytes in
/// `transportReserveDatagrams` datagrams; otherwise flush it first. Between an `endTurn` that needs a flush and the next
/// one, call nothing else: unwritten packets would be lost (and counted as `outboundFull`).
///
/// Not Sendable and without locks: one worker owns it.
public final class MediaEngine {
    /// Maximum bytes that one `receive` or `apply` writes: a DTLS flight with a certificate.
    public static let transportReserve = 16_384
    /// Maximum datagrams that one `receive` or `apply` writes.
    public static let transportReserveDatagrams = 12

    /// The implementations of AES-128 GCM, for the log: for forwarded packets, and for everything else.
    /// The first costs 0.1 us per packet with libipsec-mb, 0.4 us with OpenSSL.
    public static var cipherDescriptions: (forwarded: String, other: String) { TransportContext.cipherDescriptions }

    let configuration: EngineConfiguration
    let transports: TransportContext
    var random: RandomSource

    var tables = Tables()
    var whereabouts: Whereabouts
    var turn = Turn()
    var recorded = RecordedStreams()
    /// Which track each recorded stream is of.
    var recordedTracks: [SubscriptionID: Int] = [:]

    /// The time of the last call.
    var clock = MonotonicTime.zero
    var deadlines = Deadlines()
    var events: [MediaEvent] = []
    var counters = WorkerStatistics()
    /// What is captured, by peer; of a peer that was removed until the capture is stopped.
    var taps: [PeerID: PacketTap] = [:]

    /// An engine without rooms; throws if OpenSSL rejects the certificate or libsrtp2 fails its known-answer tests. `seed`
    /// determines all random choices.
    public init(configuration: EngineConfiguration, certificate: Certificate, seed: UInt64) throws(CryptographyError) {
        self.configuration = configuration
        random = RandomSource(seed: seed)
        var settings = TransportSettings()
        settings.consentTimeout = configuration.consentTimeout
        settings.setupTimeout = configuration.setupTimeout
        settings.data = configuration.data
        do {
            transports = try TransportContext(certificate: certificate, settings: settings, seed: random.next())
        } catch {
            switch error {
            case .cryptography(let cause): throw cause
            case .srtp(let cause): throw .failed(call: "libsrtp2: \(cause)")
            }
        }
        whereabouts = Whereabouts(configuration: configuration, random: &random)
    }

    /// When to call `advance` next.
    public var nextDeadline: MonotonicTime { deadlines.next }

    /// RTP packets forwarded so far; cheaper than all of `statistics`.
    public var packetsForwarded: UInt64 { counters.packetsForwarded }

    /// A frame for several subscribers is incomplete. The rest arrives within microseconds if it was sent in one burst;
    /// together the packets leave for each subscriber in one system call, so a caller that can wait a moment should.
    public var hasOpenPicture: Bool { turn.openFrames > 0 }

    /// Whether the engine has any peers.
    public var hasPeers: Bool { tables.peers.count > 0 }

    /// Whether datagrams from `source` belong to a peer.
    public func knows(_ source: SocketAddress) -> Bool { whereabouts.owner(of: source) != nil }

    /// The events since the last call, in order; allocates nothing if there are none.
    public func takeEvents() -> [MediaEvent] {
        guard !events.isEmpty else { return [] }
        let taken = events
        events = []
        return taken
    }

    // MARK: - Reports

    /// Counters and gauges of the whole engine.
    public var statistics: WorkerStatistics {
        var statistics = counters
        statistics.rooms = tables.rooms.count
        statistics.peers = tables.peers.count
        statistics.tracks = tables.tracks.count
        statistics.subscriptions = tables.subscriptions.count
        // Removed tracks have left their sums in `counters`.
        for index in 0..<tables.tracks.end where tables.tracks.contains(index) {
            let totals = tables.tracks[index].pointee.track.requestTotals
            statistics.nacksSent &+= totals.nacks
            statistics.keyframeRequestsSent &+= totals.keyframeRequests
        }
        return statistics
    }

    /// The load, for placing rooms: every stream in and out counts one.
    public var load: Int { tables.rooms.count + tables.peers.count + tables.tracks.count + tables.subscriptions.count }

    /// What `scope` asks for, as of the last turn; nil for a room that does not exist here.
    public func report(_ scope: ReportScope) -> MediaReport? {
        guard var report = report(scope, from: 0, limit: .max)?.part else { return nil }
        report.sort()
        return report
    }

    /// A part of a report, unordered. A room is reported in parts: of the peers from index `start` on, until there are `limit` entries. `next` is
    /// where the next part begins; nil after the last one.
    ///
    /// Some 1.5 us per entry, which for a room of a thousand is longer than packets may wait.
    public func report(_ scope: ReportScope, from start: Int, limit: Int) -> (part: MediaReport, next: Int?)? {
        switch scope {
        case .room(let id):
            guard let room = tables.roomIndex[id.rawValue] else { return nil }
            var collector = RoomReportCollector(room: room, at: clock)
            let next = collector.collect(from: start, limit: limit, in: tables)
            return (collector.report, next)
        case .downlinks(let ids, let withHistory):
            var report = MediaReport()
            report.downlinks = ids.compactMap { id in
                tables.peerIndex[id.rawValue].flatMap {
                    tables.peers[$0].pointee.downlink?.pointee.report(
                        in: tables.subscriptions.base, withHistory: withHistory, at: clock)
                }
            }
            return (report, nil)
        case .captures(let ids):
            var report = MediaReport()
            report.captures = ids.compactMap { id in taps[id]?.drain(of: id) }
            return (report, nil)
        }
    }
}
