public import Primitives

/// A packet that arrived, for transport-wide feedback.
public struct PacketArrival: Sendable, Hashable {
    /// Its transport-wide number, unwrapped.
    public var sequence: Int64
    /// When it came.
    public var time: MonotonicTime

    /// A value of these parts.
    public init(sequence: Int64, time: MonotonicTime) {
        self.sequence = sequence
        self.time = time
    }

    /// The arrival in steps of 250 us.
    var ticks: Int64 { time.microseconds / 250 }
}

extension RTCPWriter {
    /// Appends one transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1) about the
    /// packets from number `base` to that of the last arrival it can take, and returns how many arrivals it took.
    ///
    /// `arrivals` ascend in sequence and start at or after `base`; numbers between them are reported as not received. Call again with the rest (and `base`
    /// after the appended part) when fewer than all were appended: the slot was full or two packets are more than 8 s apart. 0 means that nothing was written.
    public mutating func appendTransportFeedback(
        senderSSRC: UInt32, mediaSSRC: UInt32, feedbackCount: UInt8, from base: Int64, arrivals: Span<PacketArrival>
    ) -> Int {
        guard arrivals.count > 0, arrivals[0].sequence >= base, buffer.count - length >= 20 + 8 else { return 0 }
        let saved = (length: length, start: start)
        let chunks = length + 20
        let reference = arrivals[0].ticks >> 8  // Steps of 64 ms, rounded down also below zero.
        var plan = FeedbackPlan(limit: buffer.count - chunks, time: reference << 8, next: base)
        while plan.appended < arrivals.count, plan.append(arrivals[plan.appended], buffer, chunks) {}
        guard plan.appended > 0 else { return 0 }
        let chunkBytes = plan.finish(buffer, chunks)
        let body = (16 + chunkBytes + plan.deltaBytes + 3) & ~3
        guard beginFeedback(RTCPType.transportFeedback, 15, senderSSRC, mediaSSRC, bodyLength: body) else {
            (length, start) = saved
            return 0
        }
        buffer.write(UInt16(truncatingIfNeeded: base), at: start + 12)
        buffer.write(UInt16(truncatingIfNeeded: plan.next - base), at: start + 14)
        let word = UInt32(truncatingIfNeeded: reference) << 8 | UInt32(feedbackCount)
        buffer.write(word, at: start + 16)
        writeDeltas(of: arrivals, count: plan.appended, from: reference << 8, at: chunks + chunkBytes)
        return plan.appended
    }

    private func writeDeltas(of arrivals: Span<PacketArrival>, count: Int, from time: Int64, at start: Int) {
        var offset = start
        var time = time
        for index in 0..<count {
            let delta = arrivals[index].ticks - time
            time += delta
            if (0...255).contains(delta) {
                buffer.write(UInt8(delta), at: offset)
                offset += 1
            } else {
                buffer.write(UInt16(bitPattern: Int16(delta)), at: offset)
                offset += 2
            }
        }
        // Zeros up to the word; the padding bit would say so, and most senders leave it out.
        while offset < length {
            buffer[offset] = 0
            offset += 1
        }
    }
}

/// Decides which arrivals fit into one feedback, and writes their status chunks on the way.
private struct FeedbackPlan {
    let limit: Int
    var time: Int64
    /// The next number to be reported.
    var next: Int64
    let base: Int64
    var appended = 0
    var deltaBytes = 0
    var chunkBytes = 0
    var chunk = PendingChunk()

    init(limit: Int, time: Int64, next: Int64) {
        self.limit = limit
        self.time = time
        self.next = next
        base = next
    }

    /// Adds one more arrival; false, and unchanged, when it does not fit or its time or number is out of range.
    mutating func append(_ arrival: PacketArrival, _ buffer: UnsafeMutableRawBufferPointer, _ offset: Int) -> Bool {
        let delta = arrival.ticks - time
        let missing = arrival.sequence - next
        guard missing >= 0, arrival.sequence - base < 0x7fff, let symbol = Self.symbol(for: delta) else {
            return false
        }
        // If even the largest addition for this arrival fits, nothing has to be tried on a copy.
        if missing <= 64, chunkBytes + 2 * 14 + 4 + deltaBytes + 2 + 3 <= limit {
            if missing > 0 { _ = add(0, Int(missing), buffer, offset) }
            _ = add(symbol, 1, buffer, offset)
            deltaBytes += Int(symbol)
            time = arrival.ticks
            next = arrival.sequence + 1
            appended += 1
            return true
        }
        var trial = self
        guard trial.add(0, Int(missing), buffer, offset), trial.add(symbol, 1, buffer, offset) else { return false }
        trial.deltaBytes += Int(symbol)
        // The pending symbols need two chunks at most.
        guard trial.chunkBytes + 4 + trial.deltaBytes + 3 <= limit else { return false }
        trial.time = arrival.ticks
        trial.next = arrival.sequence + 1
        trial.appended += 1
        self = trial
        return true
    }

    private mutating func add(
        _ symbol: UInt8, _ count: Int, _ buffer: UnsafeMutableRawBufferPointer, _ offset: Int
    ) -> Bool {
        var left = count
        while left > 0 {
            let added = chunk.add(symbol, atMost: left)
            left -= added
            if added == 0 {
                guard chunkBytes + 4 + deltaBytes <= limit else { return false }
                buffer.write(chunk.emit(), at: offset + chunkBytes)
                chunkBytes += 2
            }
        }
        return true
    }

    /// Writes the pending symbols; returns the bytes of all chunks.
    mutating func finish(_ buffer: UnsafeMutableRawBufferPointer, _ offset: Int) -> Int {
        while chunk.count > 0 {
            buffer.write(chunk.emit(isLast: true), at: offset + chunkBytes)
            chunkBytes += 2
        }
        return chunkBytes
    }

    private static func symbol(for delta: Int64) -> UInt8? {
        if (0...255).contains(delta) { return 1 }
        return Int16(exactly: delta) == nil ? nil : 2
    }
}

/// Symbols that wait to become a chunk: a run of equal ones, or up to 14 that differ.
struct PendingChunk {
    private var symbols = InlineArray<14, UInt8>(repeating: 0)
    private(set) var count = 0
    private var isRun = true
    private var hasLarge = false

    /// Adds up to `limit` symbols; returns how many. 0 means that a chunk must be emitted first.
    mutating func add(_ symbol: UInt8, atMost limit: Int) -> Int {
        if isRun, count == 0 || symbols[0] == symbol {
            let added = min(limit, 0x1fff - count)
            // Only the first 14 can ever be distinguished again.
            for index in min(count, 14)..<min(count + added, 14) { symbols[index] = symbol }
            count += added
            hasLarge = symbol == 2
            return added
        }
        guard count < 7 || (count < 14 && !hasLarge && symbol != 2) else { return 0 }
        symbols[count] = symbol
        count += 1
        isRun = false
        hasLarge = hasLarge || symbol == 2
        return 1
    }

    /// The next chunk. A vector that is not the last is full: 7 two-bit or 14 one-bit symbols.
    mutating func emit(isLast: Bool = false) -> UInt16 {
        if isRun {
            defer { self = PendingChunk() }
            return UInt16(symbols[0]) << 13 | UInt16(count)
        }
        if !hasLarge, count == 14 || (isLast && count > 7) {
            var word: UInt16 = 0x8000
            for index in 0..<count { word |= UInt16(symbols[index]) << (13 - index) }
            self = PendingChunk()
            return word
        }
        var word: UInt16 = 0xc000
        let used = min(count, 7)
        for index in 0..<used { word |= UInt16(symbols[index]) << (12 - 2 * index) }
        let rest = self
        self = PendingChunk()
        for index in used..<rest.count { _ = add(rest.symbols[index], atMost: 1) }
        return word
    }
}
