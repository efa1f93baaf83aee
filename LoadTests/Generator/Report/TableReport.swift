public import Foundation

extension RunReport {
    /// The run as a table of plain text.
    public var table: String {
        var rows: [(String, String)] = [
            ("scenario", scenario.name), ("server", "\(server) (\(driver))"),
            ("peers", "\(peers)\(failedJoins > 0 ? ", \(failedJoins) failed: \(firstFailure ?? "")" : "")"),
            ("measured", "\(text(seconds, 1)) s"), ("SRTP", srtpProfiles.joined(separator: ", ")),
            ("peers' timers", "\(timers), receive offload \(receiveOffload ? "on" : "off")"),
            ("", ""),
            (
                "server CPU per delivered packet",
                cpuPerPacket.map {
                    "\(text($0, 3)) us = \(text(referencePacketsPerPacket ?? 0, 3)) reference packets"
                } ?? "unknown: name the server's processes with --server-pid"
            ),
            ("reference packet", "\(text(referencePacket, 2)) us"),
            ("server", serverCores.map { "\(text($0, 3)) cores" } ?? "unknown"),
            ("generator", "\(text(generatorCores, 3)) cores, \(text(generatorPerPacket, 3)) us per delivered packet"),
            ("delivered", "\(text(deliveredPerSecond, 0)) packets/s, \(text(deliveredMegabits, 1)) Mbit/s"),
            ("", ""),
            (
                "added delay",
                "p50 \(text(delayP50, 3)) ms, p99 \(text(delayP99, 3)), p99.9 \(text(delayP999, 3)), max \(text(delayMax, 2))"
            ),
            ("join to connected", "p50 \(text(joinP50, 1)) ms, p95 \(text(joinP95, 1)), max \(text(joinMax, 1))"),
            (
                "join to first frame",
                "p50 \(text(firstFrameP50, 1)) ms, p95 \(text(firstFrameP95, 1)), max \(text(firstFrameMax, 1))"
            ),
            (
                "longest time without media",
                silenceMax.map {
                    "p50 \(text(silenceP50 ?? 0, 0)) ms, p95 \(text(silenceP95 ?? 0, 0)), max \(text($0, 0)), of each peer; "
                        + "\(moves ?? 0) moves"
                } ?? "not measured"
            ),
            (
                "memory",
                "\(text(Double(residentAfter) / 1e6, 1)) MB"
                    + (residentPerPeer.map { ", \(text($0 / 1e3, 1)) kB per peer" } ?? "")
            ),
            ("", ""),
            ("packets sent", "\(counts.sent)"), ("packets delivered", "\(counts.delivered)"),
            ("compared with what was sent", "\(counts.verified)"),
        ]
        let findings: [(String, UInt64)] = [
            ("lost", counts.lost), ("repaired by RTX", counts.recovered), ("duplicates", counts.duplicates),
            ("reordered", counts.reordered), ("sequence jumps", counts.jumps),
            ("picture ID jumps", counts.pictureJumps),
            ("left out by the server", counts.skipped), ("corrupted", counts.corrupted),
            ("failed authentication", counts.unauthentic), ("unexplained", counts.unexplained),
            ("dropped by the link", counts.linkDropped), ("lost in the generator", counts.generatorDropped),
            ("not sent by the generator", counts.unsent), ("frames sent late", counts.lateFrames),
            ("frames decoded", counts.framesDecoded),
            ("frames broken", counts.framesBroken), ("NACKs", counts.nacks), ("PLIs", counts.pictureLosses),
            ("connections ended", counts.ended),
        ]
        let always: Set<String> = ["lost", "corrupted", "duplicates", "sequence jumps"]
        for (name, count) in findings where count > 0 || always.contains(name) { rows.append((name, "\(count)")) }
        return rows.map { name, value in
            name.isEmpty ? "" : "  " + name.padding(toLength: 34, withPad: " ", startingAt: 0) + value
        }.joined(separator: "\n")
    }

    private func text(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }

    /// The report as JSON.
    public func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        return try encoder.encode(self)
    }
}
