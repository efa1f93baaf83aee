import Foundation
import MediaControl
import MediaEngine
import Primitives
import Simulation
import Testing

/// What one scenario showed, and whether it is good enough.
struct Figures {
    var utilisation: Double
    var queueDelay: Double
    var loss: Double
    var freeze: Double
    /// Seconds; infinite where it was waited for in vain, nil where none is right.
    var rightLayer: Double?
    var switches: Int
    var estimateMean: Double
    var estimateLow: Double
    var estimateHigh: Double
    var probes: Double

    private func text(_ value: Double, _ digits: Int = 2) -> String {
        guard value.isFinite else { return "-" }
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        return "\((value * scale).rounded() / scale)"
    }

    private var rightLayerText: String { rightLayer.map { $0.isFinite ? text($0, 1) : "never" } ?? "-" }

    var line: String {
        "utilisation \(text(utilisation)), queue p95 \(text(queueDelay, 0)) ms, loss \(text(loss, 4)), "
            + "longest freeze \(text(freeze, 0)) ms, right layer after \(rightLayerText) s, "
            + "changes in 5 s \(switches), estimate \(text(estimateMean)) [\(text(estimateLow))…\(text(estimateHigh))] of capacity, "
            + "probes \(text(probes, 1)) kbit/s"
    }
}

extension Scenario {
    /// Every sample as a line, for a look at one run.
    func dump() {
        for record in world.workers[0].decisions(about: viewer.id) {
            print(
                "DECISION", record.time.milliseconds - start.milliseconds, record.subscription,
                record.layer?.point.spatial ?? -1, record.reason,
                record.estimate?.kilobitsPerSecond ?? -1)
        }
        for sample in samples {
            print(
                "DUMP", name, Int(sample.time * 10), Int(sample.estimate / 1e3), Int(sample.rate / 1e3),
                Int(sample.wait), sample.layers)
        }
    }

    /// The figures from `from` on; `wanted` is what everything shown would take, `layer` the right layer of one of the views.
    func figures(from: Double, wanted: Double, layer: Int?) -> Figures {
        let settled = settled(from: from)
        let total = viewer.downlink.meter.total(from: start + .microseconds(Int64(from * 1e6)), to: world.now)
        let shares = settled.filter { $0.capacity > 0 && $0.estimate > 0 }.map { $0.estimate / $0.capacity }.sorted()
        let waits = settled.map(\.wait).sorted()
        return Figures(
            utilisation: utilisation(from: from, wanted: wanted),
            queueDelay: waits.isEmpty ? 0 : waits[Int(Double(waits.count - 1) * 0.95)],
            loss: Double(total.overflowed) / Double(max(total.datagrams + total.overflowed, 1)),
            freeze: views.map { $0.frames.longestFreeze(until: end(of: $0)).seconds * 1e3 }.max() ?? 0,
            rightLayer: layer.map { layer in
                views.indices.compactMap { timeToLayer(layer, view: $0) }.min() ?? .infinity
            },
            switches: views.indices.map { switches(from: from, view: $0) }.max() ?? 0,
            estimateMean: shares.isEmpty ? .nan : shares.reduce(0, +) / Double(shares.count),
            estimateLow: shares.isEmpty ? .nan : shares[Int(Double(shares.count - 1) * 0.05)],
            estimateHigh: shares.isEmpty ? .nan : shares[Int(Double(shares.count - 1) * 0.95)],
            probes: Double(statistics?.probeBytes ?? 0) * 8 / 1e3 / max(seconds, 1))
    }

    /// Until when a view should have shown frames.
    private func end(of view: View) -> MonotonicTime { view.description.track.flatMap { mutes[$0] } ?? world.now }

    /// Holds the figures to the limits, prints them and draws the run where a report is wanted.
    @discardableResult
    func judge(_ limits: Limits, from: Double? = nil, wanted: Double = 2_350e3, layer: Int? = nil) -> Figures {
        let figures = figures(from: from ?? lastChange + 5, wanted: wanted, layer: layer)
        print("\(name): \(figures.line)")
        if ProcessInfo.processInfo.environment["MARTLET_DUMP"].map({ name.hasPrefix($0) }) ?? false { dump() }
        Report.add(self, figures)
        #expect(world.faults == [], "\(name)")
        #expect(figures.utilisation >= limits.utilisation, "\(name): utilisation")
        #expect(figures.queueDelay <= limits.queueDelay, "\(name): queueing delay")
        #expect(figures.loss <= limits.loss, "\(name): loss at the bottleneck")
        #expect(figures.freeze <= limits.freeze, "\(name): freeze")
        #expect(figures.switches <= limits.switches, "\(name): layer changes in 5 s")
        if layer != nil { #expect((figures.rightLayer ?? .infinity) <= limits.rightLayer, "\(name): right layer") }
        if let range = limits.estimate {
            #expect(figures.estimateLow >= range.lowerBound, "\(name): estimate too low")
            #expect(figures.estimateHigh <= range.upperBound, "\(name): estimate too high")
        }
        return figures
    }
}
