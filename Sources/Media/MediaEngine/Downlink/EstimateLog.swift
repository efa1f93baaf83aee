import MediaControl
import Primitives

/// The estimates of one peer's path over the last hour: the lowest and the highest of every twenty seconds.
struct EstimateLog {
    /// Twenty seconds show every lasting change of a link; an hour of them is 1.4 kB per peer.
    static let step = TimeSpan.seconds(20)
    static let capacity = 180

    /// In kbit/s; `most` is 0 if nothing was known.
    private struct Span {
        var least: UInt32 = .max
        var most: UInt32 = 0
    }

    private var spans: [Span] = []
    /// The number of the newest span since the clock's start; older ones precede it in the ring.
    private var newest: Int64 = 0

    /// Records an estimate.
    mutating func note(_ estimate: Bitrate, at now: MonotonicTime) {
        let number = now.nanoseconds / Self.step.nanoseconds
        if spans.isEmpty {
            // Allocated at full size: nothing is allocated while media flows.
            spans = Array(repeating: Span(), count: Self.capacity)
            newest = number
        }
        while newest < number {
            // After a long silence one lap empties the ring.
            newest = max(newest + 1, number - Int64(Self.capacity))
            spans[place(newest)] = Span()
        }
        let kilobits = UInt32(clamping: estimate.kilobitsPerSecond)
        spans[place(number)].least = min(spans[place(number)].least, kilobits)
        spans[place(number)].most = max(spans[place(number)].most, kilobits)
    }

    private func place(_ number: Int64) -> Int { Int(number % Int64(Self.capacity)) }

    /// The records of the last hour, oldest first.
    func records(at now: MonotonicTime) -> [EstimateRecord] {
        guard !spans.isEmpty else { return [] }
        let oldest = max(
            now.nanoseconds / Self.step.nanoseconds - Int64(Self.capacity) + 1, newest - Int64(Self.capacity) + 1, 0)
        guard oldest <= newest else { return [] }
        var records: [EstimateRecord] = []
        records.reserveCapacity(spans.count(where: { $0.most > 0 }))
        for number in oldest...newest {
            let span = spans[place(number)]
            guard span.most > 0 else { continue }
            let began = MonotonicTime(nanoseconds: number * Self.step.nanoseconds)
            records.append(
                EstimateRecord(
                    age: now - began, least: .kilobitsPerSecond(Int64(span.least)),
                    most: .kilobitsPerSecond(Int64(span.most))))
        }
        return records
    }

    var memoryBytes: Int { spans.capacity * MemoryLayout<Span>.stride }
}
