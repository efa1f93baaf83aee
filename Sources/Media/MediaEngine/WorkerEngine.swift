public import Cryptography
import Forwarding
public import MediaControl
import PeerTransport
public import Primitives
import RTP

/// All peers, tracks and subscriptions of one worker: datagrams, commands and time in; datagrams and events out.
///
/// One turn of the worker's loop:
/// ```text
/// receive(…) for every waiting datagram         only transport replies are added to the batch
/// apply(…) for every command                    likewise
/// advance(to:into:) when nextDeadline is due    } while needsFlush: send the batch, empty it,
/// endTurn(at:into:)                             } call again
/// send the batch, empty it; consume the events; sleep until nextDeadline
/// ```
/// Before each `receive` and `apply` the batch must have room for `transportReserve` bytes in
/// `transportReserveDatagrams` datagrams; otherwise flush it first. Between an `endTurn` that needs a flush and the next
/// one, call nothing else: unwritten packets would be lost (and counted as `outboundFull`).
///
/// Not Sendable and without locks: one worker owns it.
public final class WorkerEngine {
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
    private var turn = Turn()
    var recorded = RecordedStreams()
    var taps = PacketTaps()

    /// The time of the last call.
    private(set) var clock = MonotonicTime.zero
    var deadlines = Deadlines()
    private var events: [MediaEvent] = []
    var counters = WorkerStatistics()

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
    public var hasOpenFrame: Bool { turn.openFrames > 0 }

    /// Whether the engine has any peers.
    public var hasPeers: Bool { tables.peers.count > 0 }

    /// Whether datagrams from `source` belong to a peer.
    public func knows(_ source: SocketAddress) -> Bool { whereabouts.owner(of: source) != nil }

    /// Removes and returns the events since the last call, in order; allocates nothing if there are none.
    public func consumeEvents() -> [MediaEvent] {
        guard !events.isEmpty else { return [] }
        let taken = events
        events = []
        return taken
    }

    /// Reports an event to the control plane.
    func emit(_ event: MediaEvent) { events.append(event) }

    /// Every call begins with this: the time is `now`, and a turn that the caller has not finished is over.
    @inline(__always) func begin(at now: MonotonicTime) {
        clock = now
        abandonOpenTurn()
    }

    // MARK: - The turn

    // What a turn of the worker's loop does when its datagrams and commands are in: due timers; then step 5 of a packet's way, in which every subscription
    // decides about the turn's packets; then step 6, in which every subscriber's packets are written back to back (`Turn`); then other due work for the touched
    // peers.

    /// Processes all deadlines that are due.
    public func advance(to now: MonotonicTime, into batch: inout OutboundBatch) -> TurnResult {
        begin(at: now)
        while deadlines.next <= now {
            guard batch.hasRoom(for: Self.transportReserve),
                batch.count + Self.transportReserveDatagrams <= batch.capacity
            else { return .needsFlush }
            guard let owner = deadlines.popDue(at: now) else { break }
            switch owner {
            case .peer(let index): advancePeer(index, to: now, into: &batch)
            // A held packet is due: the track's subscriptions are planned once more.
            case .track(let index): markDirty(index)
            case .room(let index): advanceRoom(index, to: now)
            }
        }
        return .done
    }

    /// Forwards the packets received since the last call, subscriber by subscriber, and sends due feedback.
    public func endTurn(at now: MonotonicTime, into batch: inout OutboundBatch) -> TurnResult {
        clock = now
        if turn.phase == .idle {
            decideAwaited(at: now)
            planTurn(at: now)
        }
        guard turn.write(tables, levelsSizes: configuration.levelsSizes, at: now, into: &batch, &counters),
            finishPeers(at: now, into: &batch)
        else { return .needsFlush }
        turn.end(in: tables)
        return .done
    }

    /// Drops the unwritten packets of an unfinished turn. Only needed for a caller that does not finish its turns.
    private func abandonOpenTurn() {
        guard turn.phase != .idle else { return }
        counters.drops.count(.outboundFull)
        turn.end(in: tables)
    }

    // MARK: - What there is to do at the end of the turn

    /// The track has packets for its subscribers at the end of the turn.
    @inline(__always) func markDirty(_ track: Int) {
        if !tables.tracks[track].pointee.isDirty { turn.markDirty(track, in: tables) }
    }

    /// The peer's deadlines and feedback are processed at the end of the turn.
    @inline(__always) func touch(_ peer: Int) {
        tables.peers[peer].pointee.isTransportTouched = true
        touchByMedia(peer)
    }

    /// The same, after an event that cannot have brought a deadline of the transport forward.
    @inline(__always) func touchByMedia(_ peer: Int) {
        if !tables.peers[peer].pointee.isTouched { turn.touch(peer, in: tables) }
    }

    /// Records whether the track's last packet leaves a frame incomplete that at least two subscribers get.
    @inline(__always) func noteOpen(_ track: Int, _ isIncomplete: Bool) {
        let state = tables.tracks[track]
        let isOpen = isIncomplete && state.pointee.isVideo && tables.isShared(track)
        if isOpen != state.pointee.isOpen { turn.setOpen(track, isOpen, in: tables) }
    }

    /// The packets of a subscription that a NACK requests are retransmitted at the end of the turn.
    func addRepeats(
        for nack: GenericNACK, _ packet: UnsafeRawBufferPointer, of subscription: Int,
        _ downlink: UnsafeMutablePointer<Downlink>, roundTrip: TimeSpan, at now: MonotonicTime
    ) {
        downlink.pointee.receive(
            nack, in: packet.bytes, for: subscription, tables, roundTrip: roundTrip, at: now, into: &turn, &counters)
    }

    /// A video of the peer starts: its bandwidth is divided at the end of the turn, before the packets are planned.
    func awaitDecision(of peer: Int) { turn.awaitDecision(of: peer) }

    // MARK: - Deciding

    /// Decides about starting videos, before the turn's packets.
    private func decideAwaited(at now: MonotonicTime) {
        for peer in turn.awaitingPeers.elements where tables.peers.contains(Int(peer)) { allocate(Int(peer), at: now) }
        turn.decided()
    }

    private func planTurn(at now: MonotonicTime) {
        for index in turn.dirtyTracks.elements where tables.tracks.contains(Int(index)) {
            let state = tables.tracks[Int(index)]
            state.pointee.isDirty = false
            state.pointee.isOpen = false
            planTrack(Int(index), state, at: now)
            let lost = state.pointee.track.overwrittenArrivals
            if lost > 0 { counters.drops[.outboundFull] &+= UInt64(lost) }
            state.pointee.track.endTurn()
        }
        turn.planned()
    }

    private func planTrack(_ index: Int, _ state: UnsafeMutablePointer<TrackState>, at now: MonotonicTime) {
        let track = state.pointee.track
        guard !track.isMuted else { return }
        if state.pointee.recording >= 0 { writeRecords(index, state, at: now) }
        let isWithheld = !state.pointee.isVideo && tables.isWithheld(state, at: now, &counters)
        guard !isWithheld || state.pointee.pins > 0 else { return }
        let followUp = turn.plan(state, isWithheld: isWithheld, in: tables, at: now, &counters)
        for found in turn.signals.elements {
            handle(found.signals, of: tables.subscriptions[Int(found.subscription)], at: now)
        }
        turn.clearSignals()
        if followUp.heldUntil != .distantFuture { deadlines.hasten(.track(index), to: followUp.heldUntil) }
        for layer in 0..<track.layerCount where followUp.keyframes & 1 << UInt8(layer) != 0 {
            requestKeyframe(index, layer: layer)
        }
    }

    private func handle(
        _ signals: Subscription.Signals, of state: UnsafeMutablePointer<SubscriptionState>, at now: MonotonicTime
    ) {
        if signals.contains(.started) {
            emit(.subscriptionStarted(state.pointee.subscription.id))
            scheduleReports(of: state.pointee.peer, at: now)
        }
        if signals.contains(.noCommonCodec) {
            emit(.subscriptionHasNoCommonCodec(state.pointee.subscription.id))
        }
        if signals.contains(.foundLayer) {
            scheduleAllocation(of: state.pointee.peer, at: now + PublishedTrack.measuringTime)
        }
        if signals.contains(.wantsDecision) { scheduleAllocation(of: state.pointee.peer, at: now) }
    }

    // MARK: - Touched peers

    /// Writes the due packets of touched peers and updates their deadlines; false when the batch is full.
    private func finishPeers(at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        while let index = turn.nextTouched {
            if tables.peers.contains(index) {
                allocate(index, at: now)
                guard writePaced(of: index, at: now, into: &batch), writeFeedback(of: index, at: now, into: &batch),
                    writeSenderReports(of: index, at: now, into: &batch), writeData(of: index, at: now, into: &batch)
                else { return false }
                deadlines.set(.peer(index), to: nextDeadline(of: index, at: now))
            }
            turn.finishTouched(in: tables)
        }
        turn.clearTouched()
        return true
    }

    /// Writes queued packets and probes; false when the batch is full.
    private func writePaced(of index: Int, at now: MonotonicTime, into batch: inout OutboundBatch) -> Bool {
        let peer = tables.peers[index]
        guard let downlink = peer.pointee.downlink else { return true }
        return downlink.pointee.advance(
            of: index, tables, over: peer.pointee.media, at: now, into: &batch, &counters)
    }

    private func nextDeadline(of index: Int, at now: MonotonicTime) -> MonotonicTime {
        let peer = tables.peers[index]
        let transport = min(
            peer.pointee.currentTransportDeadline(), peer.pointee.dataResumesAt, peer.pointee.debts.deadline)
        guard peer.pointee.isConnected else { return transport }
        let receiving = min(transport, peer.pointee.uplink.nextDeadline)
        guard let downlink = peer.pointee.downlink else { return receiving }
        return min(receiving, downlink.pointee.nextDeadline(at: now))
    }
}
