import MediaControl
import MediaWorkers
import Movies
import Playback
import Primitives
import RoomService
import Rooms

/// One playback: reads samples when they are due, and fills the feeds of its worker, at most `ahead` of time. Packets that do not fit wait here, in the
/// order of their track; nothing more of that playback is read meanwhile.
final class RunningPlayback {
    let info: PlaybackInfo
    /// The worker that hosts its room.
    let worker: Int
    private let opened: OpenedTracks
    let feeds: [PlaybackFeed]
    private var schedule: PlaybackSchedule
    private var packetizers: [TrackPacketizer]
    private var summary: PlaybackSummary
    /// Packets of the last sample that did not fit yet.
    private var waiting: Waiting?
    /// The last sample of each track, to which its goodbye refers.
    private var last: [PlaybackSchedule.Step?]
    private var list = PacketList()
    private var sample: [UInt8] = []
    /// The file could not be read.
    private(set) var hasFailed = false
    /// It is paused, and the worker has everything that was made before: until it resumes there is nothing to do.
    private(set) var isResting = false

    private struct Waiting {
        var step: PlaybackSchedule.Step
        var next = 0
    }

    /// How far ahead of time packets are made: shorter delays of the disk go unnoticed.
    static let ahead = TimeSpan.milliseconds(200)
    /// Bytes of a feed: `ahead` of 40 Mbit/s video, and of audio.
    private static let videoFeed = 1 << 20
    private static let audioFeed = 1 << 15
    /// Samples and bytes per read: a file may have a million samples for one moment, or megabytes in each, and other playbacks wait meanwhile.
    private static let mostSamples = 1_000
    private static let mostBytes = 16 << 20
    /// This many packets are sent together: one call of the kernel (UDP_SEGMENT) sends them.
    private static let burst = 8

    init(
        _ info: PlaybackInfo, _ opened: OpenedTracks, _ summary: PlaybackSummary, worker: Int, at now: MonotonicTime,
        random: inout RandomSource
    ) {
        self.info = info
        self.worker = worker
        self.opened = opened
        self.summary = summary
        let tracks = opened.tracks.map(\.track)
        schedule = PlaybackSchedule(tracks, loops: summary.loop, isPaused: summary.state == .paused, at: now)
        feeds = tracks.map {
            PlaybackFeed(peer: info.peer, capacity: $0.kind == .video ? Self.videoFeed : Self.audioFeed)
        }
        var packetizers: [TrackPacketizer] = []
        for (track, described) in zip(tracks, info.tracks) {
            packetizers.append(
                TrackPacketizer(
                    track, ssrc: described.ssrc, payloadType: described.payloadType, random: &random))
        }
        self.packetizers = packetizers
        last = tracks.map { _ in nil }
    }

    /// As the API shows it.
    func summary(at now: MonotonicTime) -> PlaybackSummary {
        var shown = summary
        shown.state = schedule.state == .paused ? .paused : .playing
        shown.loop = schedule.loops
        shown.positionMilliseconds = schedule.position(at: now).milliseconds
        shown.packetsLate = feeds.reduce(0) { $0 + $1.counts.late }
        return shown
    }

    /// Whether everything was sent and shown for its duration, or nothing more can be.
    func isOver(at now: MonotonicTime) -> Bool {
        if hasFailed { return true }
        guard case .ended(let end) = schedule.state else { return false }
        return waiting == nil && now > end + RunningPlayback.ahead / 4 && feeds.allSatisfy(\.isEmpty)
    }

    func apply(_ change: PlaybackChange, at now: MonotonicTime) {
        if let loop = change.loop { schedule.setLoops(loop) }
        if let position = change.positionMilliseconds { schedule.seek(to: .milliseconds(position), at: now) }
        switch change.paused {
        case true?:
            guard schedule.state == .playing else { return }
            schedule.pause(at: now)
            sendGoodbye()
        case false?:
            schedule.resume(at: now)
            rest(false)
        case nil: break
        }
    }

    private func rest(_ isResting: Bool) {
        self.isResting = isResting
        for feed in feeds { feed.isResting = isResting }
    }

    /// Makes the packets that are due soon.
    func fill(at now: MonotonicTime) {
        guard pushWaiting() else { return }
        guard schedule.state != .paused else { return rest(true) }
        var (samples, bytes) = (0, 0)
        while !hasFailed, samples < Self.mostSamples, bytes < Self.mostBytes,
            let step = schedule.next(upTo: now + Self.ahead, at: now)
        {
            samples += 1
            bytes += Int(opened.tracks[step.track].track.samples[step.sample].length)
            guard read(step) else { continue }
            waiting = Waiting(step: step)
            guard pushWaiting() else { return }
        }
    }

    /// Reads a sample and makes its packets; false if there are none.
    private func read(_ step: PlaybackSchedule.Step) -> Bool {
        let place = opened.tracks[step.track].track.samples[step.sample], length = Int(place.length)
        guard opened.tracks[step.track].file.read(length, at: place.offset, into: &sample) else {
            hasFailed = true
            return false
        }
        let isWhole = sample.withUnsafeBytes {
            packetizers[step.track].packetize(
                UnsafeRawBufferPointer(rebasing: $0[..<length]), isSync: place.isSync, timestamp: step.timestamp,
                into: &list)
        }
        guard isWhole else {
            summary.tracks[step.track].samplesBroken += 1
            return false
        }
        summary.tracks[step.track].samplesSent += 1
        summary.tracks[step.track].packetsSent += list.count
        return true
    }

    /// Passes the packets of the last sample to the worker; false if not all of them fit.
    private func pushWaiting() -> Bool {
        guard let item = waiting else { return true }
        let step = item.step, feed = feeds[step.track]
        let bursts = Int64((list.count + Self.burst - 1) / Self.burst)
        for index in item.next..<list.count {
            let due = step.due + step.spread * Int64(index / Self.burst) / max(bursts, 1)
            let isPushed = list.bytes.withUnsafeBytes {
                feed.push(UnsafeRawBufferPointer(rebasing: $0[list.range(of: index)]), isRTCP: false, due: due)
            }
            guard isPushed else {
                waiting?.next = index
                return false
            }
        }
        waiting = nil
        last[step.track] = step
        if let report = packetizers[step.track].report(due: step.due, timestamp: step.timestamp) {
            push(report, step)
        }
        return true
    }

    /// The stream pauses: viewers are notified at once instead of after seconds of silence.
    private func sendGoodbye() {
        _ = pushWaiting()
        for (track, step) in last.enumerated() {
            guard let step,
                let report = packetizers[track].report(due: step.due, timestamp: step.timestamp, isLast: true)
            else { continue }
            push(report, step)
        }
    }

    /// After the step's packets. A report that does not fit is skipped: the next one follows.
    private func push(_ report: [UInt8], _ step: PlaybackSchedule.Step) {
        _ = report.withUnsafeBytes { feeds[step.track].push($0, isRTCP: true, due: step.due + step.spread) }
    }

    func close() { for feed in feeds { feed.close() } }
}
