import CLoadIO
import Primitives
import RTP
import Simulation

/// One RTP stream of a publisher: replays its loop, remembers what it sent and when, and can retransmit it.
final class SendStream {
    let index: UInt32
    let plan: SendPlan
    let loop: PacketLoop
    private let extensions: ExtensionNumbers
    private let mid: [UInt8]
    private let rid: [UInt8]
    private let firstTimestamp: UInt32
    private let firstSequence: UInt16
    /// The number of the next packet.
    private(set) var counter: UInt32 = 0
    /// Frames of the media clock, those left out included …
    private(set) var frameCount: UInt32 = 0
    /// … and those that were sent: picture ids have no gap, which a receiver would take for a lost frame.
    private var pictureCount: UInt32 = 0
    private var position = 0
    private var rtxSequence: UInt16 = 0
    private(set) var sentBytes: UInt32 = 0
    /// When the next frame is due, and when the stream began.
    var nextFrame: Int64
    private let startedAt: Int64
    /// A keyframe was requested: the loop starts again at its first frame.
    private(set) var wantsKeyframe = false
    private var lastKeyframe: Int64 = 0
    private(set) var lastTimestamp: UInt32 = 0
    private(set) var lastFrameTime: Int64 = 0

    /// What was sent as packet `counter`, as long as the ring holds it.
    struct Entry {
        var counter: UInt32 = .max
        var loopIndex: UInt32 = 0
        var timestamp: UInt32 = 0
        var picture: UInt32 = 0
        var time: Int64 = 0
    }
    private let ring: UnsafeMutablePointer<Entry>
    private let ringMask: UInt32

    init(
        index: UInt32, plan: SendPlan, loop: PacketLoop, extensions: ExtensionNumbers, now: Int64,
        random: inout RandomSource
    ) {
        self.index = index
        self.plan = plan
        self.loop = loop
        self.extensions = extensions
        mid = Array(plan.mid.utf8)
        rid = Array((plan.rid ?? "").utf8)
        firstTimestamp = UInt32(truncatingIfNeeded: random.next())
        firstSequence = UInt16(truncatingIfNeeded: random.next()) & 0x7fff
        // Publishers do not tick together.
        nextFrame = now + Int64(random.next() % UInt64(loop.nanosecondsPerFrame))
        startedAt = nextFrame
        // Twenty seconds of audio, about ten of video at 1 Mbit/s.
        let size = plan.kind == .audio ? 1_024 : 2_048
        ring = .allocate(capacity: size)
        ring.initialize(repeating: Entry(), count: size)
        ringMask = UInt32(size - 1)
    }

    deinit { ring.deallocate() }

    /// What was sent as number `counter`; nil if it was sent too long ago or not yet.
    func entry(_ counter: UInt32) -> Entry? {
        let entry = ring[Int(counter & ringMask)]
        return entry.counter == counter ? entry : nil
    }

    /// The packet number of a sequence number of this stream, for about the last 32,768.
    func counter(ofSequence number: UInt16) -> UInt32 {
        let last = firstSequence &+ UInt16(truncatingIfNeeded: counter &- 1)
        return (counter &- 1) &- UInt32(last &- number)
    }

    /// Starts again at the keyframe, at most twice per second (encoders do not make more either).
    func requestKeyframe(at now: Int64) {
        guard plan.kind == .video, now - lastKeyframe > 500_000_000 else { return }
        wantsKeyframe = true
    }

    /// Begins the next frame: the packets to send now, in order.
    func beginFrame(at now: Int64) -> Range<Int> {
        if wantsKeyframe { position = 0 }
        if position == 0 { lastKeyframe = now }
        wantsKeyframe = false
        let frame = loop.frames[position]
        position = (position + 1) % loop.frames.count
        lastTimestamp = firstTimestamp &+ frameCount &* loop.ticksPerFrame
        lastFrameTime = now
        frameCount &+= 1
        pictureCount &+= 1
        nextFrame = startedAt + Int64(frameCount) * loop.nanosecondsPerFrame
        return frame
    }

    /// Advances the media clock without sending.
    func leaveOut(_ frames: UInt32) {
        frameCount &+= frames
        nextFrame = startedAt + Int64(frameCount) * loop.nanosecondsPerFrame
    }

    /// Writes the next packet, number `loopIndex` of the loop, and remembers it; returns its length before encryption.
    func write(_ loopIndex: Int, at now: Int64, transportSequence: UInt16, to slot: UnsafeMutableRawBufferPointer)
        -> Int
    {
        let entry = Entry(
            counter: counter, loopIndex: UInt32(loopIndex), timestamp: lastTimestamp, picture: pictureCount, time: now)
        ring[Int(counter & ringMask)] = entry
        let length = write(
            entry, payloadType: plan.payloadType, sequence: firstSequence &+ UInt16(truncatingIfNeeded: counter),
            ssrc: plan.ssrc, transportSequence: transportSequence, isRepeat: false, to: slot)
        counter &+= 1
        sentBytes &+= UInt32(length)
        return length
    }

    /// Writes a retransmission (RFC 4588) of a packet that was sent before; nil if it is forgotten or cannot be retransmitted.
    func writeRepeat(_ number: UInt16, transportSequence: UInt16, to slot: UnsafeMutableRawBufferPointer) -> Int? {
        guard let payloadType = plan.rtxPayloadType, let entry = entry(counter(ofSequence: number)) else { return nil }
        rtxSequence &+= 1
        return write(
            entry, payloadType: payloadType, sequence: rtxSequence, ssrc: plan.rtxSSRC,
            transportSequence: transportSequence, isRepeat: true, to: slot)
    }

    private func write(
        _ entry: Entry, payloadType: UInt8, sequence: UInt16, ssrc: UInt32, transportSequence: UInt16, isRepeat: Bool,
        to slot: UnsafeMutableRawBufferPointer
    ) -> Int {
        let packet = loop.packets[Int(entry.loopIndex)]
        let marker = packet.endsFrame && loop.kind != .opus
        RTPPatch.writeFixedHeader(
            to: slot, marker: marker, payloadType: payloadType, sequenceNumber: sequence, timestamp: entry.timestamp,
            ssrc: ssrc)
        var start = writeExtensions(to: slot, isRepeat: isRepeat, transportSequence: transportSequence)
        if isRepeat {
            slot.write(firstSequence &+ UInt16(truncatingIfNeeded: entry.counter), at: start)
            start += 2
        }
        let payload = UnsafeMutableRawBufferPointer(rebasing: slot[start..<(start + packet.length)])
        loop.memory.withUnsafeBytes { memory in
            payload.copyMemory(
                from: UnsafeRawBufferPointer(rebasing: memory[packet.offset..<(packet.offset + packet.length)]))
        }
        if loop.kind == .vp8 {
            payload.write(UInt16(0x8000) | UInt16(entry.picture & 0x7fff), at: 2)
            payload[4] = UInt8(truncatingIfNeeded: entry.picture)
        }
        if packet.endsFrame, let base = payload.baseAddress {
            Trace(stream: index, counter: entry.counter, time: entry.time)
                .write(to: base + packet.length - Trace.length)
        }
        return start + packet.length
    }

    /// mid and rid are only in the first packets of a stream, as in browsers until they have feedback; here in a few more,
    /// because the first ones may be lost.
    private func writeExtensions(
        to slot: UnsafeMutableRawBufferPointer, isRepeat: Bool, transportSequence: UInt16
    ) -> Int {
        var writer = HeaderExtensionWriter(slot, at: RTPHeader.fixedLength, allowsTwoByte: false)
        if extensions.transportSequence != 0 { _ = writer.append(id: extensions.transportSequence, transportSequence) }
        if extensions.audioLevel != 0, plan.kind == .audio {
            // A voice at -30 dBov with pauses, so that speaker detection has work to do.
            let level = UInt8(30 + (counter / 50 + index) % 20)
            _ = writer.append(id: extensions.audioLevel, 0x80 | level)
        }
        if counter < 60 || isRepeat {
            append(mid, extensions.mid, &writer, slot)
            append(rid, isRepeat ? extensions.repairedRID : extensions.rid, &writer, slot)
        }
        return writer.finish()
    }

    private func append(
        _ text: [UInt8], _ id: UInt8, _ writer: inout HeaderExtensionWriter, _ slot: UnsafeMutableRawBufferPointer
    ) {
        guard id != 0, !text.isEmpty, let offset = writer.append(id: id, length: text.count) else { return }
        for (index, byte) in text.enumerated() { slot[offset + index] = byte }
    }
}

extension SendStream {
    /// Omits the frames before `now`.
    func skip(to now: Int64) {
        let frames = UInt32(clamping: (now - nextFrame) / loop.nanosecondsPerFrame)
        leaveOut(frames)
    }
}
