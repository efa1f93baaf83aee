import Foundation
import MediaControl
import MediaEngine
import Primitives
import Simulation

/// A viewer behind a link that changes, and what it sees, sampled ten times a second.
final class Scenario {
    struct Sample {
        var time: Double
        var capacity: Double
        var estimate: Double
        var rate: Double
        var wait: Double
        /// The layers shown, one for each view; -1 for none.
        var layers: [Int]
    }

    let name: String
    let world: World
    let room: RoomID
    let publisher: VirtualClient
    let viewer: VirtualClient
    var views: [View] = []
    private(set) var samples: [Sample] = []
    private(set) var lastChange = 0.0
    let start: MonotonicTime

    init(
        _ name: String, seed: UInt64, link: LinkModel, estimatesItself: Bool = false, hasRTX: Bool = true,
        learnsRTXByMID: Bool = false
    ) throws {
        self.name = name
        world = try World(seed: seed &+ SeedShifts.current)
        room = world.openRoom()
        publisher = world.join(room)
        var settings = ClientSettings(uplink: LinkModel(delay: link.delay), downlink: link)
        settings.estimatesItself = estimatesItself
        settings.hasRTX = hasRTX
        settings.learnsRTXByMID = learnsRTXByMID
        settings.reportsLatePackets = true
        viewer = world.join(room, settings)
        start = world.now
    }

    /// A link of `rate` and 50 ms there and back.
    static func link(_ kilobits: Int64?, delay: Int64 = 25) -> LinkModel {
        LinkModel(delay: .milliseconds(delay), rate: kilobits.map { .kilobitsPerSecond($0) })
    }

    /// Publishes and watches a camera.
    @discardableResult
    func show(_ plan: VideoPlan, by client: VirtualClient? = nil, transportCC: Bool = true) -> Publication {
        let publication = (client ?? publisher).publish(plan)
        views.append(viewer.subscribe(to: publication, transportCC: transportCC))
        return publication
    }

    func hear() { _ = viewer.subscribe(to: publisher.publish()) }

    var seconds: Double { (world.now - start).seconds }

    /// Changes the viewer's downlink now.
    func change(_ body: (inout LinkModel) -> Void) {
        body(&viewer.downlink.model)
        lastChange = seconds
    }

    /// Its publisher mutes a track, or unmutes it: a change that the largest layer is waited for after.
    func mute(_ publication: Publication) {
        world.apply(.setTrackMuted(publication.description.id, true))
        mutes[publication.description.id] = world.now
    }

    func unmute(_ publication: Publication) {
        world.apply(.setTrackMuted(publication.description.id, false))
        mutes[publication.description.id] = nil
        lastChange = seconds
    }
    /// Since when tracks are muted: their views stand still from then on, and are not frozen.
    private(set) var mutes: [TrackID: MonotonicTime] = [:]

    func run(_ seconds: Double) {
        let steps = Int((seconds * 10).rounded())
        for _ in 0..<steps {
            world.run(for: .milliseconds(100))
            sample()
        }
    }

    /// What the server knows of the viewer.
    var statistics: PeerStatistics? {
        world.workers[0].engine.report(.room(room))?.peers.first { $0.peer == viewer.id }
    }

    private func sample() {
        let now = world.now
        let peer = statistics
        let before = now - .milliseconds(100)
        let total = viewer.downlink.meter.total(from: before, to: now), link = viewer.downlink.model
        samples.append(
            Sample(
                time: seconds, capacity: Double((link.rate ?? link.policer?.rate)?.bitsPerSecond ?? 0),
                estimate: Double(peer?.estimate?.bitsPerSecond ?? 0),
                rate: Double(total.bytes + 28 * total.datagrams) * 80, wait: total.longestWait.seconds * 1e3,
                layers: views.map { view in
                    guard let last = view.frames.lastTime, now - last < .seconds(2) else { return -1 }
                    return view.frames.layers.last?.layer ?? -1
                }))
    }

    // MARK: - Figures

    /// Whether the estimate has stayed within 2 % of `before` since `from`.
    func keptEstimate(of before: Double, from: Double) -> Bool {
        settled(from: from).allSatisfy { abs($0.estimate - before) <= 0.02 * before }
    }

    func settled(from: Double) -> [Sample] { samples.filter { $0.time >= from } }

    /// Seconds after the last change until the first view shows `layer` and stays there for a second.
    func timeToLayer(_ layer: Int, view: Int = 0) -> Double? {
        let after = samples.filter { $0.time > lastChange }
        for (index, sample) in after.enumerated() where sample.layers[view] == layer {
            if after[index..<min(index + 10, after.count)].allSatisfy({ $0.layers[view] == layer }) {
                return sample.time - lastChange
            }
        }
        return nil
    }

    /// The most layer changes of a view in any 5 s after `from`.
    func switches(from: Double, view: Int = 0) -> Int {
        let times = views[view].frames.layers.map { ($0.time - start).seconds }.filter { $0 >= from }
        return times.map { first in times.filter { $0 >= first && $0 < first + 5 }.count }.max() ?? 0
    }

    /// Share of the time after `from` in which a view shows `layer`.
    func share(ofLayer layer: Int, from: Double, view: Int = 0) -> Double {
        let settled = settled(from: from)
        return Double(settled.count { $0.layers[view] == layer }) / Double(max(settled.count, 1))
    }

    /// Bits a second over the link as a share of `wanted` or of the capacity, whichever is less.
    func utilisation(from: Double, wanted: Double) -> Double {
        let settled = settled(from: from)
        let possible = settled.map { $0.capacity > 0 ? min($0.capacity, wanted) : wanted }.reduce(0, +)
        return settled.map(\.rate).reduce(0, +) / max(possible, 1)
    }
}

extension VideoPlan {
    /// One stream in one size, half of a link of 3 Mbit/s: it is sent whole or not at all.
    static var lone: VideoPlan {
        .camera(width: 1_280, height: 720, bitrate: .kilobitsPerSecond(1_500), framesPerSecond: 15)
    }
}
