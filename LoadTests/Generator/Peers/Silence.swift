/// How long one participant received no media, over all connections that it had one after the other or at once.
final class Silence {
    private var last: Int64 = 0
    private var longest: Int64 = 0

    /// A media packet came at `time`, in nanoseconds.
    func note(at time: Int64) {
        if last > 0 { longest = max(longest, time - last) }
        last = max(last, time)
    }

    /// What was before `now` does not count.
    func restart(at now: Int64) { (last, longest) = (last > 0 ? now : 0, 0) }

    /// The longest time between two packets, or since the last one; 0 where none has ever come.
    func longest(until now: Int64) -> Int64 { last > 0 ? max(longest, now - last) : 0 }
}
