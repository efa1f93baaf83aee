public import Cryptography
public import MediaControl
public import Primitives

/// All peers, tracks and subscriptions of one worker: datagrams, commands and time in; datagrams and events out.
///
/// One turn of the worker's loop:
/// ```text
/// receive(…) for every datagram that waits      batch grows by transport replies only
/// apply(…) for every command                    likewise
/// advance(to:into:) when nextDeadline is due    } while needsFlush: send the batch, empty it,
/// endTurn(at:into:)                             } call again
/// send the batch, empty it; take the events; sleep until nextDeadline
/// ```
/// Before each `receive` and `apply` the batch must have room for `transportReserve` bytes in
/// `transportReserveDatagrams` datagrams; otherwise flush it first.
///
/// Not Sendable and without locks: one worker owns it.
public final class MediaEngine {
    /// The most bytes that one `receive` or `apply` writes: a DTLS flight with a certificate.
    public static let transportReserve = 16_384
    /// The most datagrams that one `receive` or `apply` writes.
    public static let transportReserveDatagrams = 12

    let configuration: EngineConfiguration

    /// An engine without rooms; throws when OpenSSL does not take the certificate. `seed` decides all its random choices.
    public init(configuration: EngineConfiguration, certificate: Certificate, seed: UInt64) throws(CryptographyError) {
        self.configuration = configuration
    }

    /// Does what the control plane asks; an unknown id is counted and ignored.
    public func apply(_ command: MediaCommand, at now: MonotonicTime, into batch: inout OutboundBatch) {
    }

    /// Takes one datagram; it is decrypted in place. Forwarding happens in `endTurn`.
    public func receive(
        _ datagram: UnsafeMutableRawBufferPointer, from source: SocketAddress, at now: MonotonicTime,
        into batch: inout OutboundBatch
    ) {
    }

    /// Forwards what came in since the last call, subscriber by subscriber, and answers feedback.
    public func endTurn(at now: MonotonicTime, into batch: inout OutboundBatch) -> TurnResult { .done }

    /// Does the work of all deadlines that have come.
    public func advance(to now: MonotonicTime, into batch: inout OutboundBatch) -> TurnResult { .done }

    /// When `advance` wants to be called next.
    public var nextDeadline: MonotonicTime { .distantFuture }

    /// What happened since the last call, in order; takes no memory when nothing did.
    public func takeEvents() -> [MediaEvent] { [] }

    /// Counters and gauges of the whole engine.
    public var statistics: WorkerStatistics { WorkerStatistics() }

    /// Everything about one room; nil for a room that is not here.
    public func roomStatistics(_ room: RoomID) -> RoomStatistics? { nil }
}
