import CLoadIO
import Primitives
import RTP

extension MediaThread {
    /// Sends sender and receiver reports, once per second.
    func sendReports(_ peer: Peer) {
        schedule(.report, peer.index, at: now + 1_000_000_000)
        guard peer.isConnected else { return }
        for stream in peer.sends where stream.counter > 0 { sendSenderReport(stream, peer) }
        let streams = peer.streams.filter { $0.received > 0 }
        expireMissing(peer)
        askForKeyframes(peer)
        guard !streams.isEmpty else { return }
        for start in stride(from: 0, to: streams.count, by: 31) {
            sendRTCP(peer) { writer in
                writer.beginReceiverReport(ssrc: peer.reporterSSRC)
                for stream in streams[start..<min(start + 31, streams.count)] {
                    writer.addReportBlock(stream.report(at: now))
                }
                writer.appendSourceDescription(ssrc: peer.reporterSSRC, cname: peer.cname)
            }
        }
    }

    private func sendSenderReport(_ stream: SendStream, _ peer: Peer) {
        let wall = now + clockDifference
        let seconds = UInt64(wall / 1_000_000_000) + 2_208_988_800
        let fraction = (UInt64(wall % 1_000_000_000) << 32) / 1_000_000_000
        let clock: Int64 = stream.plan.kind == .audio ? 48_000 : 90_000
        let since = (now - stream.lastFrameTime) / 1_000 * clock / 1_000_000
        sendRTCP(peer) { writer in
            writer.beginSenderReport(
                ssrc: stream.plan.ssrc, ntpTimestamp: seconds << 32 | fraction,
                rtpTimestamp: stream.lastTimestamp &+ UInt32(truncatingIfNeeded: since), packetCount: stream.counter,
                octetCount: stream.sentBytes)
            writer.appendSourceDescription(ssrc: stream.plan.ssrc, cname: peer.cname)
        }
    }

    /// Sends transport-wide feedback at libwebrtc's times.
    func sendTransportFeedback(_ peer: Peer) {
        peer.feedbackScheduled = false
        let since = now - peer.lastFeedback
        peer.lastFeedback = now
        let media = peer.streams.first?.ssrc ?? 0
        for _ in 0..<4 {
            var wrote = false
            sendRTCP(peer) { writer in
                wrote = peer.arrivals.write(
                    to: &writer, sender: peer.reporterSSRC, media: media, now: MonotonicTime(nanoseconds: now))
            }
            if !wrote || peer.arrivals.isEmpty { break }
        }
        peer.feedbackScheduled = true
        schedule(.feedback, peer.index, at: now + peer.arrivals.interval(since: since))
    }

    /// A gap was found: for video, the numbers are requested at once.
    func noteGap(_ stream: ReceiveStream, _ peer: Peer) {
        counters.gaps &+= 1
        lastGap = now
        guard !peer.nackScheduled else { return }
        peer.nackScheduled = true
        schedule(.nack, peer.index, at: now)
    }

    /// Requests what is missing: at once, then every 50 ms, at most ten times; what has not arrived by then is lost.
    func requestMissing(_ peer: Peer) {
        peer.nackScheduled = false
        expireMissing(peer)
        var waits = false
        for stream in peer.streams where !stream.missing.isEmpty {
            waits = true
            guard stream.format.isVideo, stream.missing.contains(where: { $0.nextRequest <= now }) else { continue }
            sendRTCP(peer) { writer in
                writer.beginNACK(senderSSRC: peer.reporterSSRC, mediaSSRC: stream.ssrc)
                for index in stream.missing.indices where stream.missing[index].nextRequest <= now {
                    guard writer.addMissing(UInt16(truncatingIfNeeded: stream.missing[index].sequence)) else { break }
                    stream.missing[index].requests += 1
                    stream.missing[index].nextRequest = now + 50_000_000
                    counters.nacks &+= 1
                }
            }
        }
        guard waits else { return }
        peer.nackScheduled = true
        schedule(.nack, peer.index, at: now + 50_000_000)
    }

    private func expireMissing(_ peer: Peer) {
        for stream in peer.streams where !stream.missing.isEmpty {
            let before = stream.missing.count
            stream.missing.removeAll { now - $0.since > 500_000_000 }
            let lost = before - stream.missing.count
            counters.lost &+= UInt64(lost)
            // A player would now miss a frame.
            if lost > 0, stream.format.isVideo { askForKeyframe(stream, peer) }
        }
    }

    private func askForKeyframes(_ peer: Peer) {
        for stream in peer.streams where stream.assembler?.needsKeyframe == true {
            if now - stream.firstPacketAt > 300_000_000 { askForKeyframe(stream, peer) }
        }
    }

    private func askForKeyframe(_ stream: ReceiveStream, _ peer: Peer) {
        guard now - stream.lastPictureLoss > 500_000_000 else { return }
        stream.lastPictureLoss = now
        counters.pictureLosses &+= 1
        sendRTCP(peer) { $0.appendPictureLoss(senderSSRC: peer.reporterSSRC, mediaSSRC: stream.ssrc) }
    }

    /// At the end of a run: what is missing now will no longer arrive.
    func finishCounting() {
        for case .some(let peer) in peers where !peer.isEnded { countAbandoned(of: peer) }
    }

    /// At the end of a connection: what has been missing for longer than reordering explains is lost.
    func countAbandoned(of peer: Peer) {
        for stream in peer.streams {
            counters.lost &+= UInt64(stream.missing.count { now - $0.since > 100_000_000 })
        }
    }

    /// Processes a decrypted RTCP compound that arrived at `time`.
    func receiveRTCP(_ datagram: UnsafeMutableRawBufferPointer, _ peer: Peer, at time: Int64) {
        let bytes = UnsafeRawBufferPointer(datagram).bytes
        guard var compound = RTCPCompound(bytes) else { return }
        while let packet = compound.next(in: bytes) {
            switch packet {
            case .senderReport(let report):
                guard let stream = peer.stream(report.ssrc) else { continue }
                stream.lastSenderReport = report.compactTimestamp
                stream.lastSenderReportAt = time
            case .nack(let nack):
                guard let stream = peer.sends.first(where: { $0.plan.ssrc == nack.mediaSSRC }) else { continue }
                for index in 0..<nack.count {
                    let entry = nack.entry(at: index, in: bytes)
                    resend(entry.packetID, of: stream, by: peer)
                    for bit in 0..<16 where entry.bitmask & (1 << bit) != 0 {
                        resend(entry.packetID &+ UInt16(bit + 1), of: stream, by: peer)
                    }
                }
            case .pictureLoss(let loss): requestKeyframe(loss.mediaSSRC, peer)
            case .fullIntraRequest(let request):
                for index in 0..<request.count { requestKeyframe(request.entry(at: index, in: bytes).ssrc, peer) }
            case .transportFeedback: counters.feedbackReceived &+= 1
            default: continue
            }
        }
    }

    private func requestKeyframe(_ ssrc: UInt32, _ peer: Peer) {
        counters.keyframeRequests &+= 1
        peer.sends.first { $0.plan.ssrc == ssrc }?.requestKeyframe(at: now)
    }
}
