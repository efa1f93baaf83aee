/// How many bytes may be in flight (RFC 9260 section 7.2).
struct CongestionWindow {
    private static let packet = PacketSize.largest
    /// RFC 9260 section 7.2.1 allows three; browsers' own stack uses ten packets, as TCP does (RFC 6928).
    private static let initial = 10 * packet
    /// RFC 9260 section 7.2.3.
    private static let minimum = 4 * packet

    private(set) var size = CongestionWindow.initial
    private var threshold = Int.max
    private var acknowledged = 0
    /// Fast recovery ends when this number is acknowledged (section 7.2.4).
    private var recoveryExit: Int64?

    var isRecovering: Bool { recoveryExit != nil }

    /// `bytes` were acknowledged up to `cumulative`; `flight` were in flight before.
    mutating func acknowledge(_ bytes: Int, cumulative: Int64, advanced: Bool, flight: Int) {
        if let exit = recoveryExit, cumulative >= exit { recoveryExit = nil }
        guard advanced, recoveryExit == nil else { return }
        // A window that was not used reveals nothing about the path.
        let wasFull = flight + Self.packet > size
        if size <= threshold {
            if wasFull { size += min(bytes, Self.packet) }
        } else {
            acknowledged += bytes
            if acknowledged >= size, wasFull {
                acknowledged -= size
                size += Self.packet
            }
        }
        if flight == bytes { acknowledged = 0 }
    }

    /// Packets were lost; `last` is the highest number sent.
    mutating func lost(last: Int64) {
        guard recoveryExit == nil else { return }
        recoveryExit = last
        threshold = max(size / 2, Self.minimum)
        size = threshold
        acknowledged = 0
    }

    /// Nothing was acknowledged for a whole timeout (section 7.2.3).
    mutating func timedOut() {
        threshold = max(size / 2, Self.minimum)
        size = Self.packet
        acknowledged = 0
        recoveryExit = nil
    }
}
