public import Primitives

/// Spreads what is sent to one peer so that bursts do not fill the path's queue.
///
/// A bucket: it fills with `factor` times the estimate and empties with bytes. While it is not empty packets leave at once, in whatever order and
/// number they come, so that runs of one size stay together for UDP_SEGMENT; this is one comparison and one subtraction a packet. Only when it is empty
/// do packets wait, as tokens (two words) for what the caller keeps anyway. Follows libwebrtc's `PacingController` in the factor of 2.5, the order of
/// priorities and the limit on waiting; differs in that it holds bursts of `burst` instead of a packet each 5 ms, for segmentation.
public struct Pacer: ~Copyable {
    /// What goes first.
    public enum Priority: UInt8, Sendable { case audio, retransmission, video, padding }

    /// A packet that waits, as the caller names it.
    public struct Token: Sendable {
        public var value: UInt64
        public var size: Int
        public var since: MonotonicTime

        public init(value: UInt64, size: Int, since: MonotonicTime) {
            self.value = value
            self.size = size
            self.since = since
        }
    }

    public static let factor = 2.5
    /// What may leave at once: 40 ms at the pacing rate, 100 ms of the link.
    static let burst = 0.040
    /// Four packets: a run worth a segmented call.
    static let leastBurst = 4_800
    /// The same where packets already wait on the path: one of them. A full queue drops of a burst what it cannot hold, and a keyframe that has lost a packet
    /// waits a round trip of that queue for it.
    static let leastBurstWaiting = 1_200
    /// Waiting is bounded: the rate rises until what waits is gone in this time.
    static let longestWait = 0.5
    /// How often waiting packets are looked at.
    static let tick = TimeInterval.milliseconds(5)
    /// A keyframe of 300 kB in packets of 1,100 bytes, next power of two, and as many again of the frames behind it.
    static let videoCapacity = 512
    /// A NACK's worth.
    static let retransmissionCapacity = 128

    private var credit = 0
    private var depth = 0
    private var bytesPerSecond = 0.0
    /// What repeats may take: half of the estimate, and that of a second at once. Where more is asked for, the path loses because too
    /// much is sent, and repeats would keep it so (libwebrtc bounds them by the target rate over a second).
    private var repeatCredit = 0
    private var repeatDepth = 0
    private var last = MonotonicTime.zero
    private(set) var queuedBytes = 0
    /// No limit is known: everything passes.
    public private(set) var isUnlimited = true
    private var video = TokenRing(capacity: Pacer.videoCapacity)
    private var retransmissions = TokenRing(capacity: Pacer.retransmissionCapacity)
    /// Packets that did not find room.
    public private(set) var dropped: UInt64 = 0

    public init() {}

    /// Paces for a path of `estimate`; nil: nothing is known, nothing waits.
    public mutating func setEstimate(_ estimate: Bitrate?, factor: Double = Pacer.factor) {
        guard let estimate else {
            isUnlimited = true
            return
        }
        if isUnlimited { credit = max(credit, 0) }
        let isFirst = isUnlimited
        isUnlimited = false
        bytesPerSecond = Double(estimate.bitsPerSecond) / 8 * factor
        let least = factor < Self.factor ? Self.leastBurstWaiting : Self.leastBurst
        depth = max(Int(bytesPerSecond * Self.burst), least)
        repeatDepth = max(Int(Double(estimate.bitsPerSecond) / 8 * 0.5), Self.leastBurst)
        if isFirst {
            credit = depth
            repeatCredit = repeatDepth
        }
    }

    /// Lets time pass.
    @inline(__always) public mutating func refill(at now: MonotonicTime) {
        guard !isUnlimited, now > last else { return }
        var rate = bytesPerSecond
        if queuedBytes > 0 { rate = max(rate, Double(queuedBytes) / Self.longestWait) }
        let elapsed = min((now - last).seconds, 1)
        credit = min(credit + Int(elapsed * rate), depth)
        repeatCredit = min(repeatCredit + Int(elapsed * Double(repeatDepth)), repeatDepth)
        last = now
    }

    /// Whether a packet of video may leave now, ahead of nothing that waits.
    @inline(__always) public var isOpen: Bool { isUnlimited || (credit > 0 && queuedBytes == 0) }
    /// Whether a repeat may leave now: it may overdraw as much again.
    @inline(__always) public var isOpenForRepeats: Bool { isUnlimited || (credit > -depth && repeatCredit > 0) }
    /// `size` bytes were a repeat.
    @inline(__always) public mutating func spendOnRepeat(_ size: Int) { repeatCredit &-= size }

    /// `size` bytes have left. Sound never waits but counts, as long as it is about the present: a minute of it without any picture is
    /// no debt that the next picture pays.
    @inline(__always) public mutating func spend(_ size: Int) {
        if !isUnlimited { credit = max(credit &- size, -2 &* depth) }
    }

    /// Lets a packet wait; false when there is no room, and it is lost.
    public mutating func enqueue(_ token: Token, priority: Priority) -> Bool {
        let taken = priority == .retransmission ? retransmissions.append(token) : video.append(token)
        if taken { queuedBytes += token.size } else { dropped &+= 1 }
        return taken
    }

    /// The next packet that may leave now; nil when none may or none waits.
    public mutating func next(at now: MonotonicTime) -> Token? {
        guard isUnlimited || credit > 0 else { return nil }
        guard let token = retransmissions.popFirst() ?? video.popFirst() else { return nil }
        queuedBytes -= token.size
        return token
    }

    public var isEmpty: Bool { queuedBytes == 0 && video.isEmpty && retransmissions.isEmpty }

    /// When packets that wait may leave.
    public func nextDeadline(at now: MonotonicTime) -> MonotonicTime {
        guard !isEmpty else { return .distantFuture }
        guard credit <= 0, bytesPerSecond > 0 else { return now }
        return now + max(Self.tick, .microseconds(Int64(Double(1 - credit) / bytesPerSecond * 1e6)))
    }

    /// Bytes of memory beside the struct itself.
    public var memoryBytes: Int { video.memoryBytes + retransmissions.memoryBytes }
}

/// A bounded queue that takes memory when it is used first.
struct TokenRing: ~Copyable {
    private let capacity: Int
    private var storage: UnsafeMutablePointer<Pacer.Token>?
    private var head = 0
    private(set) var count = 0

    /// `capacity` is a power of two.
    init(capacity: Int) { self.capacity = capacity }
    deinit { storage?.deallocate() }

    var isEmpty: Bool { count == 0 }
    var memoryBytes: Int { storage == nil ? 0 : capacity * MemoryLayout<Pacer.Token>.stride }

    mutating func append(_ token: Pacer.Token) -> Bool {
        guard count < capacity else { return false }
        let storage = self.storage ?? .allocate(capacity: capacity)
        self.storage = storage
        (storage + ((head + count) & (capacity - 1))).initialize(to: token)
        count += 1
        return true
    }

    mutating func popFirst() -> Pacer.Token? {
        guard count > 0, let storage else { return nil }
        let token = storage[head]
        head = (head + 1) & (capacity - 1)
        count -= 1
        return token
    }
}
