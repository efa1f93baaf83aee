/// How long one participant received no media, over all of its connections, successive or simultaneous.
final class Silence {
    private var last: Int64 = 0
    private var longest: Int64 = 0

    /// A media packet arrived at `time`, in nanoseconds.
    func note(at time: Int64) {
        if last > 0 { longest = max(longest, time - last) }
        last = max(last, time)
    }

    /// Times before `now` do not count.
    func restart(at now: Int64) { (last, longest) = (last > 0 ? now : 0, 0) }

    /// The longest time between two packets, or since the last one; 0 if none has ever arrived.
    func longest(until now: Int64) -> Int64 { last > 0 ? max(longest, now - last) : 0 }
}
