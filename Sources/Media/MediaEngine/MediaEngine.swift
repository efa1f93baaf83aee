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

    /// The time of the last call.
    var clock = MonotonicTime.zero
    var deadlines = DeadlineHeap()
    var strangers: StrangerLimits
    var events: [MediaEvent] = []
    var counters = WorkerStatistics()

    /// An engine without rooms; throws if OpenSSL rejects the certificate or libsrtp2 fails its known-answer tests. `seed`
    /// determines all random choices.
    public init(configuration: EngineConfiguration, certificate: Certificate, seed: UInt64) throws(CryptographyError) {
        self.configuration = configuration
        random = RandomSource(seed: seed)
        var settings = TransportSettings()
        settings.consentTimeout = configuration.consentTimeout
        settings.setupTimeout = configuration.setupTimeout
        do {
            transports = try TransportContext(certificate: certificate, settings: settings, seed: random.next())
        } catch {
            switch error {
            case .cryptography(let cause): throw cause
            case .srtp(let cause): throw .failed(call: "libsrtp2: \(cause)")
            }
        }
        whereabouts = Whereabouts(seed: random.next(), random.next())
        strangers = StrangerLimits(seed: random.next())
    }

    /// When to call `advance` next.
    public var nextDeadline: MonotonicTime { deadlines.next }

    /// RTP packets forwarded so far; cheaper than all of `statistics`.
    public var packetsForwarded: UInt64 { counters.packetsForwarded }

    /// A frame for several subscribers is incomplete. The rest arrives within microseconds if it was sent in one burst;
    /// together the packets leave for each subscriber in one system call, so a caller that can wait a moment should.
    public var hasOpenPicture: Bool { turn.openFrames > 0 }

    /// The events since the last call, in order; allocates nothing if there are none.
    public func takeEvents() -> [MediaEvent] {
        guard !events.isEmpty else { return [] }
        let taken = events
        events = []
        return taken
    }
}
