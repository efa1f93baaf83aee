import Recording

extension RecordingSummary {
    /// When each of `files` of one publisher begins, in microseconds of one clock: the publisher's clock, which alone aligns audio and video, if all files have
    /// it and it places none far from where it arrived; otherwise the server's.
    public static func starts(of files: [File]) -> [Int64] {
        let arrivals = files.map { $0.startMilliseconds * 1_000 }, moments = files.compactMap(\.senderMicroseconds)
        guard moments.count == files.count, let first = moments.first, let arrival = arrivals.first else {
            return arrivals
        }
        // Some publishers report different wall clocks for audio and video.
        let isOneClock = zip(moments, arrivals).allSatisfy { moment, arrived in
            abs((moment - first) - (arrived - arrival)) <= FileAlignment.longestDelay
        }
        return isOneClock ? moments : arrivals
    }
}
