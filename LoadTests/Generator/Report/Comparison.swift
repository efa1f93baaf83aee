import Foundation

/// Several runs of the same scenarios against several servers, side by side.
public struct Comparison {
    /// All runs of one scenario against one server.
    struct Cell {
        var reports: [RunReport]

        func median(_ value: (RunReport) -> Double?) -> Double? {
            let values = reports.compactMap(value).sorted()
            return values.isEmpty ? nil : values.middle
        }
    }

    let scenarios: [String]
    let labels: [String]
    private let cells: [String: Cell]

    /// Groups reports by scenario and label; the others are compared with the first label.
    public init(_ reports: [RunReport]) {
        func unique(_ names: [String]) -> [String] {
            names.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
        }
        scenarios = unique(reports.map(\.scenario.name))
        labels = unique(reports.map(\.label))
        cells = Dictionary(grouping: reports) { "\($0.scenario.name)/\($0.label)" }.mapValues { Cell(reports: $0) }
    }

    func cell(_ scenario: String, _ label: String) -> Cell? { cells["\(scenario)/\(label)"] }

    /// One row per scenario and server: key figure, ratio to the first server, throughput, delay, loss, memory.
    public var table: String {
        var rows = [
            [
                "scenario", "server", "runs", "us/packet", "ref. packets", "[min..max]", "ratio", "delay p50", "p99 ms",
                "lost", "packets/s", "cores", "failed joins", "kB/peer", "generator us", "SRTP",
            ]
        ]
        for scenario in scenarios {
            let base = labels.first.flatMap { cell(scenario, $0)?.median(\.referencePacketsPerPacket) }
            for label in labels {
                guard let cell = cell(scenario, label) else { continue }
                let references = cell.median(\.referencePacketsPerPacket)
                let all = cell.reports.compactMap(\.referencePacketsPerPacket)
                rows.append([
                    scenario, label, "\(cell.reports.count)", text(cell.median(\.cpuPerPacket), 2), text(references, 3),
                    "[\(text(all.min(), 2))..\(text(all.max(), 2))]",
                    text(base.flatMap { base in references.map { $0 / base } }, 2), text(cell.median(\.delayP50), 3),
                    text(cell.median(\.delayP99), 3), "\(cell.reports.reduce(0) { $0 + $1.counts.lost })",
                    text(cell.median(\.deliveredPerSecond), 0), text(cell.median(\.serverCores), 2),
                    "\(cell.reports.reduce(0) { $0 + $1.failedJoins })",
                    text(cell.median { $0.residentPerPeer.map { $0 / 1e3 } }, 0),
                    text(cell.median(\.generatorPerPacket), 2),
                    Set(cell.reports.flatMap(\.srtpProfiles)).sorted().joined(separator: " "),
                ])
            }
        }
        let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            zip(row, widths).map { $0.padding(toLength: $1 + 2, withPad: " ", startingAt: 0) }.joined()
        }.joined(separator: "\n")
    }

    private func text(_ value: Double?, _ digits: Int) -> String {
        value.map { String(format: "%.\(digits)f", $0) } ?? "-"
    }

    /// The comparison as one page: the table, and bars with a dot for each run.
    public var html: String {
        let legend = labels.enumerated().map {
            "<span class=\"key line\($0.offset)\">\(PageStyle.escape($0.element))</span>"
        }
        return PageStyle.page(
            title: "Servers compared",
            body: """
                <h1>Servers compared</h1>
                <p>Server CPU per RTP packet delivered to a subscriber, in reference packets of the same run: the bar is the median, each dot a run.</p>
                <figure><figcaption>\(legend.joined(separator: " "))</figcaption>\(bars)</figure>
                <h2>The figures</h2><pre>\(PageStyle.escape(table))</pre>
                """)
    }

    private var bars: String {
        let height = 260.0
        let top = Plot.niceCeiling(
            scenarios.flatMap { scenario in
                labels.flatMap { cell(scenario, $0)?.reports.compactMap(\.referencePacketsPerPacket) ?? [] }
            }.max() ?? 1)
        let slot = 44.0
        let group = Double(labels.count) * slot + 50
        let width = 60 + Double(scenarios.count) * group
        func y(_ value: Double) -> Double { 10 + (1 - value / top) * (height - 40) }
        var svg = "<svg viewBox=\"0 0 \(Int(width)) \(Int(height))\" style=\"max-width:\(Int(width * 1.4))px\">"
        for step in 0...4 {
            let value = top * Double(step) / 4
            svg += "<line class=\"grid\" x1=\"46\" x2=\"\(width)\" y1=\"\(y(value))\" y2=\"\(y(value))\"/>"
            svg += "<text x=\"40\" y=\"\(y(value) + 4)\" text-anchor=\"end\">\(Plot.label(value))</text>"
        }
        for (group_, scenario) in scenarios.enumerated() {
            let start = 60 + Double(group_) * group
            svg += "<text x=\"\(start)\" y=\"\(height - 8)\">\(PageStyle.escape(scenario))</text>"
            for (index, label) in labels.enumerated() {
                guard let cell = cell(scenario, label), let median = cell.median(\.referencePacketsPerPacket) else {
                    continue
                }
                let x = start + Double(index) * slot
                svg +=
                    "<rect class=\"line\(index)\" x=\"\(x)\" y=\"\(y(median))\" width=\"34\" height=\"\(y(0) - y(median))\"/>"
                svg += "<text x=\"\(x + 17)\" y=\"\(y(median) - 6)\" text-anchor=\"middle\">\(text(median, 2))</text>"
                for value in cell.reports.compactMap(\.referencePacketsPerPacket) {
                    svg += "<circle class=\"line\(index)\" cx=\"\(x + 17)\" cy=\"\(y(value))\" r=\"3\"/>"
                }
            }
        }
        return svg + "</svg>"
    }
}
