import Foundation

extension RunReport {
    /// The run as one self-contained page.
    public func html() throws -> String {
        let rows = table.split(separator: "\n", omittingEmptySubsequences: true).map { line in
            let cells = line.split(separator: "  ", maxSplits: 1, omittingEmptySubsequences: true)
            let value = cells.count > 1 ? cells[1].trimmingCharacters(in: .whitespaces) : ""
            return "<tr><td>\(PageStyle.escape(cells[0].trimmingCharacters(in: .whitespaces)))</td>"
                + "<td>\(PageStyle.escape(value))</td></tr>"
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        let settings = String(decoding: try encoder.encode(scenario), as: UTF8.self)
        return PageStyle.page(
            title: "Load test: \(scenario.name)",
            body: """
                <h1>\(PageStyle.escape(scenario.name))</h1>
                <p>\(PageStyle.escape(scenario.description)) \(PageStyle.escape(label)) by \(driver), \(date), \(machine)</p>
                <div class="tiles">\(tiles)</div>
                <div class="plots">\(plots.map(\.html).joined(separator: "\n"))</div>
                <h2>All figures</h2><table>\(rows.joined(separator: "\n"))</table>
                <h2>The scenario</h2><pre>\(PageStyle.escape(settings))</pre>
                """)
    }

    private var tiles: String {
        let cost = cpuPerPacket.map { String(format: "%.2f us", $0) } ?? "unknown"
        let references = referencePacketsPerPacket.map { String(format: "%.2f reference packets", $0) } ?? ""
        let values = [
            (cost, "server CPU per delivered packet \(references)"),
            (String(format: "%.0f /s", deliveredPerSecond), "packets delivered"),
            (String(format: "%.2f ms", delayP99), "added delay, p99"),
            ("\(counts.lost)", "packets lost of \(counts.delivered)"),
            (String(format: "%.0f ms", firstFrameP95), "join to first frame, p95"),
            (residentPerPeer.map { String(format: "%.0f kB", $0 / 1_000) } ?? "unknown", "memory per peer"),
        ]
        return values.map { "<div class=\"tile\"><b>\($0.0)</b><span>\($0.1)</span></div>" }.joined()
    }

    private var plots: [Plot] {
        func line(_ name: String, _ value: KeyPath<Second, Double>) -> Plot.Line {
            Plot.Line(name: name, points: timeline.map { ($0.time, $0[keyPath: value]) })
        }
        let memory = Plot.Line(name: "resident", points: timeline.map { ($0.time, Double($0.residentBytes) / 1e6) })
        let cost = Plot.Line(
            name: "server",
            points: timeline.map { ($0.time, $0.delivered > 0 ? $0.serverCores * 1e6 / $0.delivered : 0) })
        return [
            Plot(
                title: "Added delay", unit: "ms", lines: [line("p50", \.delayP50), line("p99", \.delayP99)]),
            Plot(title: "Longest delay", unit: "ms", lines: [line("max", \.delayMax)]),
            Plot(
                title: "CPU", unit: "cores",
                lines: [line("server", \.serverCores), line("generator", \.generatorCores)]),
            Plot(
                title: "CPU per delivered packet", unit: "us", lines: [cost, line("reference packet", \.reference)]),
            Plot(title: "Delivered", unit: "packets/s", lines: [line("delivered", \.delivered)]),
            Plot(title: "Loss", unit: "packets/s", lines: [line("lost", \.lost)]),
            Plot(title: "Memory of the server", unit: "MB", lines: [memory]),
        ]
    }
}
