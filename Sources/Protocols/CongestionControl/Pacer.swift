public import Primitives

/// Spreads the packets to one peer so that bursts do not fill the path's queue.
///
/// A token bucket: it fills with `factor` times the estimate and is spent by bytes. While it is not empty packets leave at once, in any order and
/// number, so that runs of one size stay together for UDP_SEGMENT; this costs one comparison and one subtraction per packet. Only when it is empty
/// are packets queued, as tokens (two words) for data that the caller keeps anyway: only video is. Audio never waits, and a retransmission is sent or refused.
/// Follows libwebrtc's `PacingController` in the factor of 2.5 and the limit on waiting; differs in sending bursts of `burst` instead of a packet every 5 ms,
/// for segmentation.
public struct Pacer: ~Copyable {
    /// A queued packet, as the caller identifies it.
    public struct Token: Sendable {
        public var value: UInt64
        public var size: Int

        public init(value: UInt64, size: Int) {
            self.value = value
            self.size = size
        }
    }

    public static let factor = 2.5
    /// Maximum burst: 40 ms at the pacing rate, 100 ms of the link.
    static let burst = 0.040
    /// Four packets: a run worth a segmented call.
    static let leastBurst = 4_800
    /// The minimum while packets already wait on the path: one packet. A full queue drops the part of a burst that it cannot hold, and a keyframe that has lost
    /// a packet waits a round trip of that queue for it.
    static let leastBurstWaiting = 1_200
    /// Maximum waiting time: the rate rises so that the queue empties within it.
    static let longestWait = 0.5
    /// How often queued packets are checked.
    static let tick = TimeSpan.milliseconds(5)
    /// A keyframe of 300 kB in packets of 1,100 bytes, next power of two, and as many packets of the frames after it.
    static let capacity = 512

    private var credit = 0
    private var depth = 0
    private var bytesPerSecond = 0.0
    /// Budget for retransmissions: half of what arrives or of the estimate, at most a second's worth at once. If more is requested, the path loses packets
    /// because too much is sent, and retransmissions would keep it that way (libwebrtc limits them to the target rate over a second). Where losses are the only
    /// limit, the estimate may be several times what arrives.
    private var repeatCredit = 0
    private var repeatDepth = 0
    private var last = MonotonicTime.zero
    private var queuedBytes = 0
    /// No estimate is known: nothing waits.
    private var isUnlimited = true
    private var queue = TokenRing(capacity: Pacer.capacity)

    public init() {}

    /// Paces for a path of `estimate`, of which `delivered` arrives; nil: unknown, and without an estimate nothing waits.
    public mutating func setEstimate(_ estimate: Bitrate?, delivered: Bitrate? = nil, factor: Double = Pacer.factor) {
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
        let carried = min(estimate, delivered ?? estimate)
        repeatDepth = max(Int(Double(carried.bitsPerSecond) / 8 * 0.5), Self.leastBurst)
        if isFirst {
            credit = depth
            repeatCredit = repeatDepth
        }
    }

    /// Advances time.
    @inline(__always) public mutating func refill(at now: MonotonicTime) {
        guard !isUnlimited, now > last else { return }
        var rate = bytesPerSecond
        if queuedBytes > 0 { rate = max(rate, Double(queuedBytes) / Self.longestWait) }
        let elapsed = min((now - last).seconds, 1)
        credit = min(credit + Int(elapsed * rate), depth)
        repeatCredit = min(repeatCredit + Int(elapsed * Double(repeatDepth)), repeatDepth)
        last = now
    }

    /// Whether a video packet may leave now, with no queued packet before it.
    @inline(__always) public var isOpen: Bool { isUnlimited || (credit > 0 && queuedBytes == 0) }
    /// Whether a retransmission may leave now: it may overdraw by as much again.
    @inline(__always) public var isOpenForRepeats: Bool { isUnlimited || (credit > -depth && repeatCredit > 0) }
    /// `size` bytes were a retransmission.
    @inline(__always) public mutating func spendOnRepeat(_ size: Int) { repeatCredit &-= size }

    /// Counts `size` sent bytes. Audio never waits but counts, as long as it is recent: a minute of audio without video is
    /// no debt that the next video pays.
    @inline(__always) public mutating func spend(_ size: Int) {
        if !isUnlimited { credit = max(credit &- size, -2 &* depth) }
    }

    /// Queues a packet; false when there is no room.
    public mutating func enqueue(_ token: Token) -> Bool {
        guard queue.append(token) else { return false }
        queuedBytes += token.size
        return true
    }

    /// The next packet that may leave now; nil when none may or none is queued.
    public mutating func next(at now: MonotonicTime) -> Token? {
        guard isUnlimited || credit > 0 else { return nil }
        guard let token = queue.popFirst() else { return nil }
        queuedBytes -= token.size
        return token
    }

    /// Whether nothing is queued; every packet has bytes.
    @inline(__always) public var isEmpty: Bool { queuedBytes == 0 }

    /// When queued packets may leave.
    public func nextDeadline(at now: MonotonicTime) -> MonotonicTime {
        guard !isEmpty else { return .distantFuture }
        guard credit <= 0, bytesPerSecond > 0 else { return now }
        return now + max(Self.tick, .microseconds(Int64(Double(1 - credit) / bytesPerSecond * 1e6)))
    }

    /// Bytes of memory besides the struct itself.
    public var memoryBytes: Int { queue.memoryBytes }
}

/// A bounded queue that allocates memory on first use.
struct TokenRing: ~Copyable {
    private let capacity: Int
    private var storage: UnsafeMutablePointer<Pacer.Token>?
    private var head = 0
    private var count = 0

    /// `capacity` is a power of two.
    init(capacity: Int) { self.capacity = capacity }
    deinit { storage?.deallocate() }

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
