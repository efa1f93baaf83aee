extension RunReport {
    /// Derives every figure from the first and the last sample of the measured time.
    mutating func fill(
        from first: Sample, to last: Sample, delay: Histogram, joins: Snapshot, reference: ReferenceSampler
    ) {
        let length = Double(last.time - first.time)
        seconds = length / 1e9
        counts = Counts(from: first.counters, to: last.counters)
        let delivered = Double(counts.delivered)
        deliveredPerSecond = delivered / seconds
        deliveredMegabits =
            Double(last.counters.receivedBytes &- first.counters.receivedBytes) * 8 / 1e6 / seconds
        generatorCores = Double(last.ownTime - first.ownTime) / length
        referencePacket = reference.median
        if delivered > 0 { generatorPerPacket = Double(last.ownTime - first.ownTime) / 1e3 / delivered }
        if first.serverTime > 0, last.serverTime > 0 {
            serverCores = Double(last.serverTime - first.serverTime) / length
            if delivered > 0 {
                let cost = Double(last.serverTime - first.serverTime) / 1e3 / delivered
                cpuPerPacket = cost
                if referencePacket > 0 { referencePacketsPerPacket = cost / referencePacket }
            }
        }
        func milliseconds(_ histogram: Histogram, _ quantile: Double) -> Double {
            Double(histogram.quantile(quantile)) / 1e6
        }
        srtpProfiles = joins.srtpProfiles.sorted()
        (delayP50, delayP99) = (milliseconds(delay, 0.5), milliseconds(delay, 0.99))
        (delayP999, delayMax) = (milliseconds(delay, 0.999), Double(delay.maximum) / 1e6)
        (joinP50, joinP95) = (milliseconds(joins.joinTimes, 0.5), milliseconds(joins.joinTimes, 0.95))
        joinMax = Double(joins.joinTimes.maximum) / 1e6
        let frames = joins.firstFrameTimes
        (firstFrameP50, firstFrameP95) = (milliseconds(frames, 0.5), milliseconds(frames, 0.95))
        firstFrameMax = Double(frames.maximum) / 1e6
        let silences = last.silences.filter { $0 > 0 }.sorted().map { Double($0) / 1e6 }
        if !silences.isEmpty {
            self.silences = silences
            silenceP50 = silences[silences.count / 2]
            silenceP95 = silences[silences.count * 95 / 100]
            silenceMax = silences.last
        }
        residentAfter = last.resident
        if peers > 0, last.resident > 0 { residentPerPeer = Double(last.resident - residentBefore) / Double(peers) }
    }
}

extension Snapshot {
    /// Adds what another thread has counted.
    mutating func add(_ other: Snapshot) {
        counters.add(other.counters)
        delay.add(other.delay)
        joinTimes.add(other.joinTimes)
        firstFrameTimes.add(other.firstFrameTimes)
        threadTime += other.threadTime
        open += other.open
        silences += other.silences
        srtpProfiles.formUnion(other.srtpProfiles)
    }
}

extension Counters {
    static let all: [any WritableKeyPath<Counters, UInt64> & Sendable] = [
        \.sent, \.sentBytes, \.resent, \.keyframeRequests, \.feedbackReceived, \.lateFrames, \.received,
        \.receivedBytes, \.verified, \.duplicates, \.reordered, \.recovered, \.padding, \.lost, \.gaps, \.jumps,
        \.skipped, \.pictureJumps, \.corrupted, \.unauthentic, \.unexplained, \.linkDropped, \.nacks,
        \.pictureLosses, \.framesDecoded, \.framesBroken, \.datagramsIn, \.datagramsOut, \.receiveRuns, \.bufferDrops,
        \.unsent,
        \.connected, \.ended,
    ]

    mutating func add(_ other: Counters) {
        for path in Self.all { self[keyPath: path] &+= other[keyPath: path] }
    }
}
