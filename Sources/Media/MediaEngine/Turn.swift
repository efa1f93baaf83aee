import Forwarding
import MediaControl
import PeerTransport
import Primitives

/// The collected work of one turn, and its writing, which can continue after a flush at the same packet.
///
/// ```text
/// dirty tracks -> subscriptions: plan -> pending peers -> their subscriptions -> slots, protected in place
/// ```
/// Per packet there is no allocation, no reference counting and no clock reading (`LocklessForwardingTests`).
struct Turn: ~Copyable {
    /// What is being written.
    enum Phase {
        /// Nothing: a new turn may begin.
        case idle
        case repeats, packets, feedback
    }

    /// A packet to retransmit in this turn.
    struct Repeat {
        var subscription: Int32
        /// Extended output number.
        var sequence: UInt32
    }

    /// What a subscription found while it planned.
    struct Signal {
        var subscription: Int32
        var signals: Subscription.Signals
    }

    /// The work for the subscriptions of one track besides writing their packets.
    struct FollowUp {
        /// Bitmap of the layers that should send a keyframe.
        var keyframes: UInt8 = 0
        /// When they must plan again even without packets.
        var heldUntil = MonotonicTime.distantFuture
    }

    private(set) var phase = Phase.idle
    /// Tracks with packets.
    private(set) var dirtyTracks = WorkList<Int32>(capacity: 64)
    /// How many of them are in the middle of a frame.
    private(set) var openFrames = 0
    /// Peers to process at the end of the turn.
    private var touchedPeers = WorkList<Int32>(capacity: 64)
    /// Subscribers with videos that await a decision before they start.
    private(set) var awaitingPeers = WorkList<Int32>(capacity: 64)
    /// Subscribers with packets.
    private var pendingPeers = WorkList<Int32>(capacity: 64)
    private var repeats = WorkList<Repeat>(capacity: 64)
    /// The findings of the subscriptions of the track that was planned last.
    private(set) var signals = WorkList<Signal>(capacity: 64)
    /// The packets, by subscription.
    private var plan = WorkList<SentPacket>(capacity: 1_024)

    /// Positions in the lists of retransmissions, of peers with packets, and of touched peers.
    private var repeatCursor = 0
    private var peerCursor = 0
    private var touchedCursor = 0
    /// The subscription being written, and its next packet in the plan; -1 before a peer's first.
    private var subscription = -1
    private var item = 0

    // MARK: - Collecting

    /// The track has packets for its subscribers at the end of the turn.
    mutating func markDirty(_ track: Int, in tables: borrowing Tables) {
        guard !tables.tracks[track].pointee.isDirty else { return }
        tables.tracks[track].pointee.isDirty = true
        dirtyTracks.append(Int32(truncatingIfNeeded: track))
    }

    /// The track's last packet leaves a frame incomplete that several subscribers get, or completes it.
    mutating func setOpen(_ track: Int, _ isOpen: Bool, in tables: borrowing Tables) {
        guard isOpen != tables.tracks[track].pointee.isOpen else { return }
        tables.tracks[track].pointee.isOpen = isOpen
        openFrames &+= isOpen ? 1 : -1
    }

    /// The peer is processed at the end of the turn.
    mutating func touch(_ peer: Int, in tables: borrowing Tables) {
        guard !tables.peers[peer].pointee.isTouched else { return }
        tables.peers[peer].pointee.isTouched = true
        touchedPeers.append(Int32(truncatingIfNeeded: peer))
    }

    /// A video of the peer starts: its bandwidth is divided before the turn's packets are planned.
    mutating func awaitDecision(of peer: Int) { awaitingPeers.append(Int32(truncatingIfNeeded: peer)) }

    /// The decisions about starting videos are made.
    mutating func decided() { awaitingPeers.removeAll() }

    /// A packet is retransmitted in this turn.
    @inline(__always)
    mutating func addRepeat(of sequence: UInt32, to subscription: Int) {
        repeats.append(Repeat(subscription: Int32(truncatingIfNeeded: subscription), sequence: sequence))
    }

    // MARK: - Planning

    /// Lets the subscriptions of a track plan its packets of this turn; `signals` receives what else they found. `isWithheld`: only subscriptions that have
    /// pinned the track get them.
    mutating func plan(
        _ track: UnsafeMutablePointer<TrackState>, isWithheld: Bool, in tables: borrowing Tables, at now: MonotonicTime,
        _ counters: inout WorkerStatistics
    ) -> FollowUp {
        let base = tables.subscriptions.base
        let published = track.pointee.track
        var followUp = FollowUp()
        var next = track.pointee.subscriptions.first
        while next >= 0 {
            let index = next, state = base + next
            next = state.pointee.inTrack.next
            if next >= 0 { (base + next).pointee.prefetch(from: base) }
            guard state.pointee.isReady, !isWithheld || state.pointee.isPinned else {
                Self.countHeld(state, published, in: tables, &counters)
                continue
            }
            let found = plan(index, state, published, in: tables, at: now)
            followUp.heldUntil = min(followUp.heldUntil, state.pointee.subscription.heldUntil)
            guard !found.isEmpty else { continue }
            if found.contains(.wantsKeyframe) {
                followUp.keyframes |= 1 << UInt8(state.pointee.subscription.wantedLayer & 7)
            }
            signals.append(Signal(subscription: Int32(truncatingIfNeeded: index), signals: found))
        }
        return followUp
    }

    /// Lets a subscription plan its packets of this turn.
    @inline(__always)
    private mutating func plan(
        _ index: Int, _ state: UnsafeMutablePointer<SubscriptionState>, _ track: PublishedTrack,
        in tables: borrowing Tables, at now: MonotonicTime
    ) -> Subscription.Signals {
        let start = plan.count
        let signals = state.pointee.subscription.plan(track, at: now, into: &plan)
        if plan.count > start {
            state.pointee.planStart = start
            state.pointee.planEnd = plan.count
            if let downlink = tables.peers[state.pointee.peer].pointee.downlink,
                downlink.pointee.enqueue(index, in: tables.subscriptions.base)
            {
                pendingPeers.append(Int32(truncatingIfNeeded: state.pointee.peer))
            }
        }
        return signals
    }

    /// Counts the packets that a slow reader is not sent.
    private static func countHeld(
        _ state: UnsafeMutablePointer<SubscriptionState>, _ track: PublishedTrack, in tables: borrowing Tables,
        _ counters: inout WorkerStatistics
    ) {
        guard !state.pointee.isReady, state.pointee.subscription.kind == .video,
            tables.peers[state.pointee.peer].pointee.downlink?.pointee.isHeld == true
        else { return }
        let layer = state.pointee.subscription.wantedLayer
        counters.drops[.videoHeld] &+= UInt64(track.arrivals.count { !$0.isGap && Int($0.layer) == layer })
    }

    /// The signals of a track's subscriptions are handled.
    mutating func clearSignals() { signals.removeAll() }

    /// All tracks are planned: writing begins.
    mutating func planned() {
        dirtyTracks.removeAll()
        openFrames = 0
        phase = .repeats
    }

    // MARK: - Writing

    /// Writes this turn's retransmissions and then its packets, subscriber by subscriber; false when the batch is full. `levelsSizes`: the packets of
    /// one subscription are padded to equal length.
    mutating func write(
        _ tables: borrowing Tables, levelsSizes: Bool, at now: MonotonicTime, into batch: inout OutboundBatch,
        _ counters: inout WorkerStatistics
    ) -> Bool {
        if phase == .repeats {
            guard writeRepeats(tables, at: now, into: &batch, &counters) else { return false }
            phase = .packets
        }
        if phase == .packets {
            guard writePackets(tables, levelsSizes: levelsSizes, at: now, into: &batch, &counters) else { return false }
            phase = .feedback
        }
        return true
    }

    /// Answers this turn's NACKs, before its new packets, because receivers wait for them.
    private mutating func writeRepeats(
        _ tables: borrowing Tables, at now: MonotonicTime, into batch: inout OutboundBatch,
        _ counters: inout WorkerStatistics
    ) -> Bool {
        while repeatCursor < repeats.count {
            guard Self.write(repeats[repeatCursor], tables, at: now, into: &batch, &counters) else { return false }
            repeatCursor += 1
        }
        return true
    }

    private static func write(
        _ request: Repeat, _ tables: borrowing Tables, at now: MonotonicTime, into batch: inout OutboundBatch,
        _ counters: inout WorkerStatistics
    ) -> Bool {
        guard tables.subscriptions.contains(Int(request.subscription)) else { return true }
        let state = tables.subscriptions[Int(request.subscription)]
        let peer = tables.peers[state.pointee.peer]
        guard state.pointee.track >= 0, let downlink = peer.pointee.downlink,
            let route = SendRoute(over: peer.pointee.media, at: now)
        else { return true }
        return downlink.pointee.writeRepeat(
            request.sequence, of: state, track: tables.tracks[state.pointee.track].pointee.track, over: route,
            into: &batch, &counters)
    }

    private mutating func writePackets(
        _ tables: borrowing Tables, levelsSizes: Bool, at now: MonotonicTime, into batch: inout OutboundBatch,
        _ counters: inout WorkerStatistics
    ) -> Bool {
        let sendTime = SendStamp.sendTime(at: now)
        while peerCursor < pendingPeers.count {
            let index = Int(pendingPeers[peerCursor])
            let peer = tables.peers[index]
            prefetchPeers(tables)
            if let downlink = peer.pointee.downlink,
                let route = SendRoute(over: peer.pointee.media, at: now, sendTime: sendTime)
            {
                if subscription < 0 { begin(downlink.pointee.firstPending, tables, levelsSizes, &counters) }
                while subscription >= 0 {
                    let state = tables.subscriptions[subscription]
                    guard writePackets(of: state, downlink, tables, over: route, into: &batch, &counters) else {
                        return false
                    }
                    begin(state.pointee.nextPending, tables, levelsSizes, &counters)
                }
                if downlink.pointee.isWaiting {
                    peer.pointee.isTransportTouched = true
                    touch(index, in: tables)
                }
            }
            peerCursor += 1
            subscription = -1
        }
        return true
    }

    @inline(__always)
    private mutating func writePackets(
        of state: UnsafeMutablePointer<SubscriptionState>, _ downlink: UnsafeMutablePointer<Downlink>,
        _ tables: borrowing Tables, over route: SendRoute, into batch: inout OutboundBatch,
        _ counters: inout WorkerStatistics
    ) -> Bool {
        guard state.pointee.track >= 0 else { return true }
        return downlink.pointee.writePlanned(
            plan.elements, from: &item, of: subscription, state,
            track: tables.tracks[state.pointee.track].pointee.unmanaged, over: route, into: &batch, &counters)
    }

    /// Moves to the first packet of a subscription, whose packets are padded to equal length; -1 for none.
    @inline(__always)
    private mutating func begin(
        _ index: Int, _ tables: borrowing Tables, _ levelsSizes: Bool, _ counters: inout WorkerStatistics
    ) {
        subscription = index
        guard index >= 0 else { return }
        let state = tables.subscriptions[index]
        let start = state.pointee.planStart, end = state.pointee.planEnd
        item = start
        guard end &- start > 1, state.pointee.track >= 0, levelsSizes else { return }
        let items = UnsafeMutableBufferPointer(rebasing: plan.elements[start..<end])
        let padded = tables.tracks[state.pointee.track].pointee.unmanaged._withUnsafeGuaranteedRef {
            state.pointee.subscription.level(items, of: $0)
        }
        counters.packetsPadded &+= UInt64(padded)
    }

    // MARK: - Finishing

    /// The next touched peer, which may have been removed; nil after the last one.
    var nextTouched: Int? { touchedCursor < touchedPeers.count ? Int(touchedPeers[touchedCursor]) : nil }

    /// The peer `nextTouched` is processed, unless it was removed.
    mutating func finishTouched(in tables: borrowing Tables) {
        let index = Int(touchedPeers[touchedCursor])
        if tables.peers.contains(index) { tables.peers[index].pointee.isTouched = false }
        touchedCursor += 1
    }

    /// All touched peers are processed.
    mutating func clearTouched() { touchedPeers.removeAll() }

    /// Ends the turn; discards the remaining work.
    mutating func end(in tables: borrowing Tables) {
        for index in pendingPeers.elements where tables.peers.contains(Int(index)) {
            tables.peers[Int(index)].pointee.downlink?.pointee.clearPending()
        }
        pendingPeers.removeAll()
        repeats.removeAll()
        plan.removeAll()
        phase = .idle
        (repeatCursor, peerCursor, touchedCursor) = (0, 0, 0)
        (subscription, item) = (-1, 0)
    }

    // MARK: - Prefetching

    /// Prefetches the memory of the peers whose packets are written next, each a step further along the pointers than the one after it: peer;
    /// what it points to; what that points to; the log entry of its next packet.
    @inline(__always)
    private func prefetchPeers(_ tables: borrowing Tables) {
        let count = pendingPeers.count
        if peerCursor &+ 3 < count {
            Prefetch.lines(tables.peers[Int(pendingPeers[peerCursor &+ 3])], MemoryLayout<PeerState>.size)
        }
        if peerCursor &+ 2 < count {
            let peer = tables.peers[Int(pendingPeers[peerCursor &+ 2])]
            if let downlink = peer.pointee.downlink { Prefetch.lines(downlink, Downlink.hotBytes) }
            Prefetch.lines(peer.pointee.media, MemoryLayout<MediaPath>.size)
        }
        if peerCursor &+ 1 < count {
            let peer = tables.peers[Int(pendingPeers[peerCursor &+ 1])]
            peer.pointee.media.pointee.prefetchForSending()
        }
        tables.peers[Int(pendingPeers[peerCursor])].pointee.downlink?.pointee.prefetchNext()
    }
}
