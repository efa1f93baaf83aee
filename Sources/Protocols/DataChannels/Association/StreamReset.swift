import Primitives

/// Closing of streams (RFC 6525): one request outstanding per side, and nothing stored for the peer's.
struct StreamReset {
    private enum Parameter {
        static let outgoing: UInt16 = 13, incoming: UInt16 = 14, everything: UInt16 = 15, response: UInt16 = 16
        static let addOutgoing: UInt16 = 17, addIncoming: UInt16 = 18
    }

    /// Results of RFC 6525 section 4.4.
    private enum Result: UInt32 {
        case nothingToDo = 0, performed = 1, denied = 2, badSequence = 5, inProgress = 6
    }

    private struct Request {
        var sequence: UInt32
        var streams: [UInt16]
        var lastTSN: UInt32
        var sendAt: MonotonicTime
        /// The peer does not have everything yet that was sent before.
        var isDeferred = false
        /// Those of the streams that the peer uses again.
        var reopened: [UInt16] = []

        /// Streams whose reset is not known to be done.
        var open: [UInt16] { streams.filter { !reopened.contains($0) } }
    }

    /// The result of a RE-CONFIG chunk.
    struct Outcome {
        /// Streams that the peer starts again; an empty list means all.
        var peerReset: [UInt16]?
        /// Streams of this side that may be used again.
        var completed: [UInt16] = []
        /// The value of the answering chunk.
        var answer: [UInt8] = []
    }

    /// Maximum streams in one request: as many as there are channels, and they fit one packet.
    private static let mostStreams = 64

    /// Streams that wait until everything on them is acknowledged.
    private var waiting: [UInt16] = []
    private var request: Request?
    private var nextSequence: UInt32
    private var peerSequence: UInt32
    /// The peer's request that was answered "in progress". Browsers repeat it under its number (usrsctp) or under the next one (dcsctp).
    private var deferred: UInt32?
    private var lastResult: Result = .nothingToDo

    /// Request numbers start at the first TSNs (RFC 6525 section 5.1).
    init(firstTSN: UInt32, peerFirstTSN: UInt32) {
        nextSequence = firstTSN
        peerSequence = peerFirstTSN
    }

    var nextDeadline: MonotonicTime { request?.sendAt ?? .distantFuture }

    /// Closes a stream of this side once it is drained.
    mutating func close(_ stream: UInt16) {
        guard !waiting.contains(stream), !(request?.open.contains(stream) ?? false) else { return }
        waiting.append(stream)
    }

    /// Whether no stream is being closed.
    var isIdle: Bool { waiting.isEmpty && request == nil }

    /// The peer uses the stream again, so it has processed the request; its answer was lost or is late. Returns whether one was open.
    mutating func forget(_ stream: UInt16) -> Bool {
        guard var request, request.open.contains(stream) else { return false }
        // A repeated request stays as it was: a request without streams would mean all of them.
        request.reopened.append(stream)
        self.request = request
        return true
    }

    /// Whether a request must be written now.
    func isDue(at now: MonotonicTime, isDrained: (UInt16) -> Bool) -> Bool {
        if let request { return request.sendAt <= now }
        return waiting.contains(where: isDrained)
    }

    /// Appends the request that is due; `last` is the highest number sent.
    mutating func write(
        into packet: inout PacketWriter, last: Int64, timeout: TimeSpan, at now: MonotonicTime,
        isDrained: (UInt16) -> Bool
    ) {
        if request == nil {
            // A peer may have tens of thousands of streams closed: only as many are examined as fit one request.
            var ready: [UInt16] = []
            for stream in waiting where ready.count < Self.mostStreams && isDrained(stream) { ready.append(stream) }
            guard !ready.isEmpty else { return }
            // In the same order.
            var rest = ready[...]
            waiting.removeAll { $0 == rest.first && rest.popFirst() != nil }
            request = Request(
                sequence: nextSequence, streams: ready, lastTSN: Serial.wire(last), sendAt: now)
            nextSequence &+= 1
        }
        guard var request = due(at: now) else { return }
        var value: [UInt8] = []
        value.append(number: request.sequence)
        value.append(number: peerSequence &- 1)
        value.append(number: request.lastTSN)
        for stream in request.streams { value.append(number: stream) }
        var bytes: [UInt8] = []
        bytes.append(parameter: Parameter.outgoing, value)
        guard packet.chunk(.reconfiguration, bytes) else { return }
        request.sendAt = now + timeout
        self.request = request
    }

    /// The request that is to be sent now. A deferred request gets the next number: Chromium's dcsctp, before it was fixed, repeated the answer to an answered
    /// number for ever, and all other implementations accept either.
    private mutating func due(at now: MonotonicTime) -> Request? {
        guard let former = request, former.sendAt <= now else { return nil }
        guard former.isDeferred else { return former }
        guard !former.open.isEmpty else {
            request = nil
            return nil
        }
        let next = Request(sequence: nextSequence, streams: former.open, lastTSN: former.lastTSN, sendAt: now)
        nextSequence &+= 1
        request = next
        return next
    }

    /// Processes a RE-CONFIG chunk; `cumulative`: everything up to there has arrived. `holds`: messages of these streams were not delivered yet.
    mutating func receive(
        _ value: UnsafeRawBufferPointer, cumulative: Int64, at now: MonotonicTime, holds: ([UInt16]) -> Bool
    ) -> Outcome {
        var outcome = Outcome(), parameters = ParameterReader(value)
        // At most two parameters are allowed (RFC 6525 section 3.1).
        for _ in 0..<2 {
            guard let (type, value) = parameters.next(), value.count >= 4 else { break }
            let sequence = value.bytes.readUInt32(0)
            switch type {
            case Parameter.outgoing: receiveRequest(value, sequence, cumulative, holds, &outcome)
            case Parameter.incoming, Parameter.everything, Parameter.addOutgoing, Parameter.addIncoming:
                answer(sequence, isNext(sequence) ? .denied : .badSequence, &outcome)
            case Parameter.response:
                guard value.count >= 8 else { break }
                receiveResponse(sequence, value.bytes.readUInt32(4), at: now, &outcome)
            default: break
            }
        }
        return outcome
    }

    private func isNext(_ sequence: UInt32) -> Bool { sequence == peerSequence }

    private mutating func receiveRequest(
        _ value: UnsafeRawBufferPointer, _ sequence: UInt32, _ cumulative: Int64, _ holds: ([UInt16]) -> Bool,
        _ outcome: inout Outcome
    ) {
        guard value.count >= 12 else { return }
        if sequence == peerSequence &- 1 { return answer(sequence, lastResult, repeated: true, &outcome) }
        if deferred == peerSequence, sequence == peerSequence &+ 1 { peerSequence = sequence }
        guard isNext(sequence) else { return answer(sequence, .badSequence, &outcome) }
        let streams = stride(from: 12, to: value.count - 1, by: 2).map { value.bytes.readUInt16($0) }
        // Data before the reset is still missing, or acknowledged data is still to be delivered: the peer repeats the request.
        let isComplete = Serial.unwrap(value.bytes.readUInt32(8), near: cumulative) <= cumulative
        guard isComplete, !holds(streams) else {
            deferred = sequence
            return answer(sequence, .inProgress, &outcome)
        }
        deferred = nil
        outcome.peerReset = streams
        answer(sequence, .performed, &outcome)
    }

    private mutating func answer(
        _ sequence: UInt32, _ result: Result, repeated: Bool = false, _ outcome: inout Outcome
    ) {
        if !repeated, isNext(sequence), result != .inProgress {
            peerSequence &+= 1
            lastResult = result
        }
        var value: [UInt8] = []
        value.append(number: sequence)
        value.append(number: result.rawValue)
        outcome.answer.append(parameter: Parameter.response, value)
    }

    private mutating func receiveResponse(
        _ sequence: UInt32, _ result: UInt32, at now: MonotonicTime, _ outcome: inout Outcome
    ) {
        guard var request, request.sequence == sequence else { return }
        // The request is repeated when the timer expires, unless the peer answers once more before that (usrsctp).
        guard result != Result.inProgress.rawValue else {
            request.isDeferred = true
            self.request = request
            return
        }
        self.request = nil
        outcome.completed += request.open
    }
}
