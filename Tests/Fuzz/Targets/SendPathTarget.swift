import CongestionControl
import Forwarding
import Primitives
import RTP

/// What one subscriber is sent and what RTCP it answers with, from the bytes of the datagram to the estimate and the pacer.
func fuzzSendPath(_ bytes: UnsafeRawBufferPointer) {
    var input = FuzzInput(bytes)
    var script = SendPathScript()
    while !input.isEmpty { script.step(&input) }
}

/// The steps of an input.
struct SendPathScript: ~Copyable {
    private var path = SendPath()
    private var now = MonotonicTime(milliseconds: 1_000)
    private var sequence: UInt16 = 0

    mutating func step(_ input: inout FuzzInput) {
        let kind = input.byte()
        switch kind & 7 {
        case 0: for _ in 0...(kind >> 3) { send(sequence &+ 1, size: 1_000) }
        case 1: now = now + .milliseconds(Int64(input.byte()) << Int64(kind >> 4))
        case 2, 3: receive(input.record(), sendsFirst: kind & 8 != 0, times: kind & 16 != 0 ? 1 << (kind >> 5) : 1)
        case 4: turnClock(rounds: Int(input.byte()), forwards: kind & 8 != 0)
        case 5:
            let next = Bitrate.kilobitsPerSecond(Int64(input.byte()) << Int64(kind >> 3))
            path.setDemand(
                allocated: .kilobitsPerSecond(Int64(input.byte())), video: .kilobitsPerSecond(Int64(kind & 8)),
                next: next == .zero ? nil : next, wanted: next, at: now)
        case 6:
            if let size = path.probePacketDue(at: now) { send(sequence &+ 1, size: size, as: .probe) }
            if kind & 8 != 0 { path.abandonProbe() }
        default:
            _ = path.wait(subscription: Int(kind), sequence: UInt32(sequence), size: 1_100)
            path.refill(at: now)
            while let waiting = path.nextWaiting(at: now) {
                precondition(waiting.subscription < 256, "what waited comes out as it went in")
                path.sent(nil, size: 1_100, as: .media, at: now)
            }
        }
        path.advance(to: now)
        check()
    }

    private mutating func send(_ number: UInt16, size: Int, as purpose: SendPath.Purpose = .media) {
        sequence = number
        path.sent(number, size: size, as: purpose, at: now)
    }

    /// Takes a compound as the engine does; where `sendsFirst`, what it reports has been sent.
    private mutating func receive(_ datagram: UnsafeRawBufferPointer, sendsFirst: Bool, times: Int) {
        let span = datagram.bytes
        for _ in 0..<times {
            guard var compound = RTCPCompound(span) else { return }
            while let part = compound.next(in: span) {
                switch part {
                case .transportFeedback(let feedback):
                    if sendsFirst {
                        for place in 0..<min(feedback.packetCount, 64) {
                            send(feedback.baseSequence &+ UInt16(place), size: 1_000)
                        }
                        now = now + .milliseconds(20)
                    }
                    _ = path.receive(feedback, in: span, at: now)
                case .maximumBitrate(let estimate):
                    path.receiverEstimate(.bitsPerSecond(Int64(clamping: estimate.bitsPerSecond)), at: now)
                case .receiverReport(let report):
                    for place in 0..<report.blocks.count {
                        let block = report.blocks.block(at: place, in: span)
                        let packets = Int(block.highestSequence & 0x7fff)
                        let lost = Double(packets) * Double(block.fractionLost) / 256
                        path.receiverReports(about: packets, lost: lost, at: now)
                    }
                default: break
                }
            }
        }
    }

    /// A receiver whose clock goes round: three reference times, each of them half a turn or next to none from the one before.
    private mutating func turnClock(rounds: Int, forwards: Bool) {
        for _ in 0..<rounds {
            for reference: UInt32 in forwards ? [0x80_0000, 0, 1] : [0x7f_ffff, 0xff_ffff, 0xff_fffe] {
                send(sequence &+ 1, size: 1_000)
                let number = [UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)]
                let time = [16, 8, 0].map { UInt8(truncatingIfNeeded: reference >> UInt32($0)) }
                let bytes: [UInt8] =
                    [0x8f, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2] + number + [0, 1] + time + [0, 0x20, 1, 4, 0]
                now = now + .milliseconds(1)
                bytes.withUnsafeBytes { receive($0, sendsFirst: false, times: 1) }
            }
        }
    }

    private func check() {
        let settings = BandwidthEstimator.Settings()
        if let estimate = path.estimate(at: now) {
            precondition(estimate >= settings.least && estimate <= settings.most, "in its bounds")
        }
        // Sixty turns of the reference time, twelve days each: what the clock lets pass.
        let queue = path.condition(at: now).queueDelay
        precondition(queue < .seconds(800 * 86_400) && queue > .seconds(-800 * 86_400), "clocks go no further")
        _ = path.nextDeadline(at: now)
    }
}
