import Forwarding
import MediaControl
import PeerTransport
import Primitives
import RTP

/// Everything that one peer is sent: its subscriptions, the numbers of their packets, its path, and the division of its bandwidth.
///
/// One for each peer that receives, a block of memory of its own; publish-only peers have none (RTP packets are never sent to them).
/// `send` is the only way out, for new packets, queued ones, retransmissions and probes:
/// ```text
/// planned ---> writePlanned --+--------> send: slot, number, bytes, protection ---> batch
///                             | path not open: queue       ^    ^    ^
///                             +----------> writeWaiting ---+    |    |
/// NACK ------> receive ------------------> writeRepeat ---------+    |
/// estimator needs a measurement ---------> writeProbe ---------------+
/// ```
struct Downlink: ~Copyable {
    // The fields that sending packets touches come first: `hotBytes`.
    /// Subscriptions with packets in this turn, chained in planning order; -1 for none.
    private(set) var firstPending = -1
    private var lastPending = -1
    /// The last transport-wide sequence number. Only sent packets use one: a packet that was not written or not protected leaves no gap.
    private var transportSequence: UInt16 = 0
    private(set) var packetsSent: UInt64 = 0
    private(set) var bytesSent: UInt64 = 0
    /// Retransmissions among them.
    private var repeatsSent: UInt64 = 0
    private var path = SendPath()

    private var list = SubscriptionList(of: .peer)
    private var nextReport = MonotonicTime.distantFuture
    private var lookups = Allowance.lookups
    private var repeats = Allowance.repeats
    private var allocator = BandwidthAllocator()
    private var way = DownlinkWay()

    /// Size of everything before the list of subscriptions.
    static let hotBytes = 48 + SendPath.hotBytes
    /// Room for the largest packet with all additions.
    static let slotLength = Subscription.maximumLength + WebRTCTransport.protectionOverhead
    /// Assumed size of a queued packet: an encoder's usual packet with its headers.
    private static let waitingLength = 1_100

    /// Bytes of memory, including those outside the struct.
    var memoryBytes: Int { MemoryLayout<Self>.size + path.memoryBytes + allocator.memoryBytes }

    // MARK: - Subscriptions

    /// The peer's subscriptions, newest first. The current one may be removed during iteration.
    func subscriptions(in base: UnsafeMutablePointer<SubscriptionState>) -> SubscriptionChain { list.chain(in: base) }

    var subscriptionCount: Int { list.count }

    mutating func add(_ index: Int, in base: UnsafeMutablePointer<SubscriptionState>) { list.add(index, in: base) }
    mutating func remove(_ index: Int, in base: UnsafeMutablePointer<SubscriptionState>) {
        list.remove(index, in: base)
    }

    /// Adds a subscription with packets in this turn; true when it is the peer's first one.
    @inline(__always)
    mutating func enqueue(_ index: Int, in base: UnsafeMutablePointer<SubscriptionState>) -> Bool {
        base[index].nextPending = -1
        let isFirst = lastPending < 0
        if isFirst { firstPending = index } else { base[lastPending].nextPending = index }
        lastPending = index
        return isFirst
    }

    /// The turn is over.
    mutating func clearPending() { (firstPending, lastPending) = (-1, -1) }

    // MARK: - Sending

    /// Reserves a slot, has a packet written into it by `write`, protects and commits it. A packet with a transport-wide number uses
    /// the number only when it is sent.
    @inline(__always)
    private mutating func send(
        isNumbered: Bool, content: OutboundBatch.Content, as purpose: SendPath.Purpose = .media, over route: SendRoute,
        into batch: inout OutboundBatch, _ counters: inout WorkerStatistics,
        write: (SendStamp, UnsafeMutableRawBufferPointer) -> Int?
    ) -> SendRoute.Outcome {
        guard let slot = batch.reserve(Self.slotLength) else { return .batchFull }
        let number = transportSequence &+ (isNumbered ? 1 : 0)
        guard let length = write(SendStamp(sendTime: route.sendTime, transportSequence: number), slot) else {
            return .empty
        }
        route.media.pointee.capture(slot, length: length, isSent: true, isRTCP: false, at: route.now)
        let total = route.media.pointee.protectRTP(slot, length: length)
        guard total >= 0 else { return .unprotected }
        batch.commit(length: total, to: route.destination, content: content)
        transportSequence = number
        path.sent(isNumbered ? number : nil, size: total, as: purpose, at: route.now)
        packetsSent &+= 1
        bytesSent &+= UInt64(total)
        counters.packetsSent &+= 1
        counters.bytesSent &+= UInt64(total)
        return .sent
    }

    /// Writes the planned packets of one subscription from `item` on; false when the batch is full.
    @inline(__always)
    mutating func writePlanned(
        _ items: UnsafeMutableBufferPointer<SentPacket>, from item: inout Int, of index: Int,
        _ state: UnsafeMutablePointer<SubscriptionState>, track: Unmanaged<PublishedTrack>,
        over route: SendRoute, into batch: inout OutboundBatch, _ counters: inout WorkerStatistics
    ) -> Bool {
        let end = state.pointee.planEnd
        let isNumbered = state.pointee.subscription.usesTransportSequence
        // Audio never waits.
        let isPaced = state.pointee.subscription.kind == .video
        let content: OutboundBatch.Content = isPaced ? .video : .audio
        if isPaced { path.refill(at: route.now) }
        while item < end {
            let planned = items[item]
            var isFull = false
            if isPaced, !path.isOpen {
                isFull = !wait(planned, of: index, state, track: track, &counters)
                guard isFull else {
                    item &+= 1
                    continue
                }
            }
            let outcome = send(isNumbered: isNumbered, content: content, over: route, into: &batch, &counters) {
                stamp, slot in
                track._withUnsafeGuaranteedRef {
                    isFull
                        ? state.pointee.subscription.writeFiller(
                            insteadOf: planned, stamp: stamp, at: route.now, into: slot)
                        : state.pointee.subscription.write(planned, of: $0, stamp: stamp, at: route.now, into: slot)
                }
            }
            switch outcome {
            case .batchFull: return false
            case .sent: counters.packetsForwarded &+= 1
            case .empty: counters.drops.count(.retransmissionTooOld)
            case .unprotected: counters.drops.count(.protectFailed)
            }
            item &+= 1
        }
        return true
    }

    /// Queues a planned packet; false if no room is left, and only its number is sent.
    private mutating func wait(
        _ planned: SentPacket, of index: Int, _ state: UnsafeMutablePointer<SubscriptionState>,
        track: Unmanaged<PublishedTrack>, _ counters: inout WorkerStatistics
    ) -> Bool {
        if path.wait(subscription: index, sequence: planned.sequence, size: Self.waitingLength) { return true }
        counters.drops.count(.outboundFull)
        // A partial frame is useless: the next one sent is a keyframe.
        track._withUnsafeGuaranteedRef { state.pointee.subscription.stop($0) }
        return false
    }

    /// Whether packets are queued for the path.
    @inline(__always) var isWaiting: Bool { path.isWaiting }

    /// Writes queued packets, as far as the path allows, then the padding of a due probe; false when the batch is full. `own` is the peer's number.
    mutating func advance(
        of own: Int, _ tables: borrowing Tables, over media: UnsafeMutablePointer<MediaPath>, at now: MonotonicTime,
        into batch: inout OutboundBatch, _ counters: inout WorkerStatistics
    ) -> Bool {
        if isWaiting, let route = SendRoute(over: media, at: now) {
            guard writeWaiting(of: own, tables, over: route, into: &batch, &counters) else { return false }
        }
        path.advance(to: now)
        let isDone = writeProbe(tables, over: media, at: now, into: &batch, &counters)
        if let outcome = path.consumeProbeOutcome() { counters.probes.count(outcome) }
        return isDone
    }

    private mutating func writeWaiting(
        of own: Int, _ tables: borrowing Tables, over route: SendRoute, into batch: inout OutboundBatch,
        _ counters: inout WorkerStatistics
    ) -> Bool {
        path.refill(at: route.now)
        // Nothing is dequeued before there is a slot for it.
        while batch.hasRoom(for: Self.slotLength) {
            guard let waiting = path.nextWaiting(at: route.now) else { return true }
            // The subscription was removed.
            guard tables.subscriptions.contains(waiting.subscription) else { continue }
            let state = tables.subscriptions[waiting.subscription]
            guard state.pointee.peer == own else { continue }
            let track = state.pointee.track >= 0 ? tables.tracks[state.pointee.track].pointee.track : nil
            var result = WaitingResult.gone
            let isNumbered = state.pointee.subscription.usesTransportSequence
            let outcome = send(isNumbered: isNumbered, content: .video, over: route, into: &batch, &counters) {
                stamp, slot in
                result = state.pointee.subscription.writeWaiting(
                    waiting.sequence, of: track, stamp: stamp, at: route.now, into: slot)
                return result.length
            }
            switch result {
            case .written: break
            case .gone: counters.drops.count(.outboundFull)
            case .filled(_, let breaksFrame):
                counters.drops.count(.retransmissionTooOld)
                if breaksFrame, let track { state.pointee.subscription.stop(track) }
            }
            switch outcome {
            case .sent: counters.packetsForwarded &+= 1
            case .unprotected: counters.drops.count(.protectFailed)
            case .empty, .batchFull: break
            }
        }
        return false
    }

    /// Retransmits a packet for a NACK; false when the batch is full.
    mutating func writeRepeat(
        _ sequence: UInt32, of state: UnsafeMutablePointer<SubscriptionState>, track: PublishedTrack,
        over route: SendRoute, into batch: inout OutboundBatch, _ counters: inout WorkerStatistics
    ) -> Bool {
        guard batch.hasRoom(for: Self.slotLength) else { return false }
        path.refill(at: route.now)
        guard path.isOpenForRepeats, repeats.consume(1, sent: packetsSent &- repeatsSent) else {
            // The receiver requests it again.
            counters.drops.count(.retransmissionThrottled)
            return true
        }
        // A retransmission on the RTX stream is a new packet for the receiver's estimator; one on the media stream has its number already.
        let kept = state.pointee.subscription.keptNumber(of: sequence, in: track)
        let isNumbered = kept == nil && state.pointee.subscription.usesTransportSequence
        let outcome = send(
            isNumbered: isNumbered, content: state.pointee.subscription.kind == .video ? .video : .audio,
            as: .retransmission, over: route, into: &batch, &counters
        ) {
            state.pointee.subscription.writeRepeat(sequence, of: track, stamp: $0, at: route.now, into: $1)
        }
        switch outcome {
        case .sent:
            repeatsSent &+= 1
            if let kept { path.sentAgain(kept) }
            counters.retransmissionsSent &+= 1
        case .empty: counters.drops.count(.retransmissionTooOld)
        case .unprotected: counters.drops.count(.protectFailed)
        case .batchFull: return false
        }
        return true
    }

    /// Sends the padding of a probe, if it is due; false when the batch is full.
    private mutating func writeProbe(
        _ tables: borrowing Tables, over media: UnsafeMutablePointer<MediaPath>, at now: MonotonicTime,
        into batch: inout OutboundBatch, _ counters: inout WorkerStatistics
    ) -> Bool {
        guard path.probePacketDue(at: now) != nil else { return true }
        // More data already waits for a slow reader.
        guard !isHeld, let route = SendRoute(over: media, at: now),
            let state = probeCarrier(in: tables.subscriptions.base)
        else {
            path.abandonProbe()
            return true
        }
        let track = tables.tracks[state.pointee.track].pointee.track
        while let wanted = path.probePacketDue(at: route.now) {
            let outcome = send(
                isNumbered: true, content: .video, as: .probe, over: route, into: &batch, &counters
            ) {
                state.pointee.subscription.writeProbe(wanted: wanted, of: track, stamp: $0, at: route.now, into: $1)
            }
            switch outcome {
            case .sent: break
            case .batchFull: return false
            case .empty, .unprotected:
                path.abandonProbe()
                return true
            }
        }
        return true
    }

    // MARK: - The path

    func condition(at now: MonotonicTime) -> PathCondition { path.condition(at: now) }

    /// Processes transport-wide feedback; true when the videos are evaluated sooner than planned because of it.
    mutating func receive(
        _ feedback: TransportFeedback, in datagram: RawSpan, at now: MonotonicTime, _ counters: inout WorkerStatistics
    ) -> Bool {
        // An audio receiver sends feedback for each packet: a feedback packet costs some lookups besides those of its packets.
        if !mayLookUp(feedback.packetCount + 4) {
            counters.drops.count(.rtcpUnexpected)
        } else if !path.receive(feedback, in: datagram, at: now) {
            counters.drops.count(.rtcpMalformed)
        }
        if let outcome = path.consumeProbeOutcome() { counters.probes.count(outcome) }
        return lookIfEstimateMoved(at: now)
    }

    /// Applies the receiver's own estimate (REMB); true as for feedback.
    mutating func receive(estimate rate: Bitrate, at now: MonotonicTime) -> Bool {
        path.receiverEstimate(rate, at: now)
        return lookIfEstimateMoved(at: now)
    }

    /// Applies the losses in receiver reports (`SendPath.receiverReports`); true as for feedback.
    mutating func receiveReports(about packets: Int, lost: Double, at now: MonotonicTime) -> Bool {
        path.receiverReports(about: packets, lost: lost, at: now)
        return lookIfEstimateMoved(at: now)
    }

    /// Schedules an immediate evaluation if the estimate has moved; true when that is sooner than planned.
    private mutating func lookIfEstimateMoved(at now: MonotonicTime) -> Bool {
        allocator.isHastened(by: path.estimate(at: now)) && allocator.look(at: now)
    }

    /// The network path to the peer has changed.
    mutating func pathChanged(at now: MonotonicTime) { path.changed(at: now) }

    /// Bytes of messages that may leave now next to media; nil: no limit.
    mutating func messageAllowance(at now: MonotonicTime) -> Int? { isWaiting ? 0 : path.messageAllowance(at: now) }

    /// Data channels have sent this many bytes over the path (`SendPath.sentData`).
    mutating func sentData(_ byteCount: Int, counted: Int?, moreWait: Bool, at now: MonotonicTime) -> MonotonicTime? {
        path.sentData(byteCount, counted: counted, moreWait: moreWait, at: now)
    }

    /// The round trip by receiver reports (`SendPath.roundTrip`).
    func roundTrip(at now: MonotonicTime) -> TimeSpan? { path.roundTrip(at: now) }

    /// Adds a measurement by a receiver report.
    mutating func measured(_ sample: TimeSpan, at now: MonotonicTime) { path.measured(roundTrip: sample, at: now) }

    /// Whether feedback or a NACK may cause `count` lookups.
    mutating func mayLookUp(_ count: Int) -> Bool { lookups.consume(count, sent: packetsSent) }

    /// Whether video waits for a slow reader.
    var isHeld: Bool { way.isHeld }

    /// The reader of its TCP connection is slow; false if that is known.
    mutating func hold(at now: MonotonicTime) -> Bool { way.hold(&path, at: now) }

    /// The reader has caught up; false if it was not slow.
    mutating func release() -> Bool { way.release() }

    /// Media goes to `destination` from now on; returns whether video that was held for another destination may be sent again.
    mutating func follow(_ destination: SocketAddress) -> Bool { way.follow(destination, &path) }

    // MARK: - Dividing the path

    /// Schedules an evaluation of the videos at `moment` or earlier; true when that is sooner than planned.
    mutating func look(at moment: MonotonicTime) -> Bool { allocator.look(at: moment) }

    /// When the videos are evaluated next.
    var nextDecision: MonotonicTime { allocator.nextLook }

    /// Divides the path, if it is time to; returns the follow-up work. `mayReceive`: packets can be sent to the peer.
    mutating func decide(
        _ tables: borrowing Tables, mayReceive: Bool, at now: MonotonicTime
    ) -> [BandwidthAllocator.Change] {
        guard nextDecision <= now else { return [] }
        guard mayReceive else {
            allocator.suspend()
            return []
        }
        return allocator.decide(subscriptions(in: tables.subscriptions.base), tables, over: &path, at: now)
    }

    /// Sets the policy by which bandwidth is divided.
    mutating func setPolicy(_ policy: DownlinkPolicy, in base: UnsafeMutablePointer<SubscriptionState>) {
        guard allocator.setPolicy(policy) else { return }
        // Videos that are not sent yet start differently.
        for state in subscriptions(in: base) { state.pointee.allocation.invalidate() }
    }

    /// Whether the policy limits how many videos are sent at once.
    var hasVideoLimit: Bool { allocator.policy.maximumVideos != nil }

    /// The results, now and in the past; see `BandwidthAllocator`.
    var totals: (allocated: Bitrate, wanted: Bitrate) { allocator.totals }
    func history(at now: MonotonicTime) -> DownlinkReport { allocator.history(at: now) }

    // MARK: - Deadlines

    /// Schedules a check of sender reports at `moment` or earlier; true when that is sooner than planned.
    mutating func hastenReports(to moment: MonotonicTime) -> Bool {
        guard moment < nextReport else { return false }
        nextReport = moment
        return true
    }

    func reportsAreDue(at now: MonotonicTime) -> Bool { nextReport <= now }

    /// The due reports are written; the next check is at `moment`.
    mutating func reported(next moment: MonotonicTime) { nextReport = moment }

    /// When the next packet, decision or report is due.
    func nextDeadline(at now: MonotonicTime) -> MonotonicTime {
        min(nextReport, min(nextDecision, path.nextDeadline(at: now)))
    }

    /// Prefetches the log entry that the next packet will fill.
    @inline(__always) mutating func prefetchNext() { path.prefetch(next: transportSequence &+ 1) }

    /// Prefetches the log entries of the packets in the next report.
    @inline(__always) mutating func prefetchReported() { path.prefetchReported() }
}
