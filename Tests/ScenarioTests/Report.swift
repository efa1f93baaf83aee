import Foundation

/// Plots and figures of all scenarios as one page: `MARTLET_REPORT=DIRECTORY swift test --filter Scenario`, or `make scenarios`.
enum Report {
    private static var directory: URL? {
        ProcessInfo.processInfo.environment["MARTLET_REPORT"].map { URL(fileURLWithPath: $0, isDirectory: true) }
    }

    static func add(_ scenario: Scenario, _ figures: Figures) {
        guard let directory else { return }
        let file = scenario.name.lowercased().map { $0.isLetter || $0.isNumber ? String($0) : "-" }.joined()
        do {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            try Plot(scenario).svg.write(
                to: directory.appendingPathComponent("\(file).svg"), atomically: true, encoding: .utf8)
            try "\(scenario.name)\t\(figures.line)\n".write(
                to: directory.appendingPathComponent("\(file).txt"), atomically: true, encoding: .utf8)
            try writeIndex(in: directory)
        } catch {
            print("no report: \(error)")
        }
    }

    private static func writeIndex(in directory: URL) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
            .filter { $0.hasSuffix(".svg") }.sorted()
        var page =
            "<!doctype html><meta charset=utf-8><title>Scenarios</title><style>body{font:14px sans-serif;margin:2em}</style>"
        page += "<h1>Bad networks, in virtual time</h1>"
        page +=
            "<p>Grey: what the link carries. Blue: the estimate. Green: what is sent. Red: wait at the bottleneck. Black: the layer shown."
        for name in names {
            let text = directory.appendingPathComponent(name.replacingOccurrences(of: ".svg", with: ".txt"))
            let parts = try String(contentsOf: text, encoding: .utf8).split(separator: "\t", maxSplits: 1)
            page += "<h2>\(parts[0])</h2><p>\(parts.count > 1 ? parts[1] : "")</p><img src=\"\(name)\">"
        }
        try page.write(to: directory.appendingPathComponent("index.html"), atomically: true, encoding: .utf8)
    }
}

/// One run as a picture: rates above, wait and layer below.
struct Plot {
    private let scenario: Scenario
    private let width = 900.0
    private let height = 320.0
    private let left = 60.0
    private let split = 210.0

    init(_ scenario: Scenario) { self.scenario = scenario }

    var svg: String {
        let samples = scenario.samples
        let end = max(samples.last?.time ?? 1, 1)
        let most = max(samples.map { max($0.rate, max($0.capacity, $0.estimate)) }.max() ?? 1, 1) * 1.05
        let wait = max(samples.map(\.wait).max() ?? 1, 100)
        func x(_ time: Double) -> Double { left + (width - left - 10) * time / end }
        func line(_ color: String, _ value: (Scenario.Sample) -> Double, _ dash: String = "") -> String {
            let points = samples.map { "\((x($0.time) * 10).rounded() / 10),\((value($0) * 10).rounded() / 10)" }
            return
                "<polyline fill='none' stroke='\(color)' stroke-width='1.3' \(dash) points='\(points.joined(separator: " "))'/>"
        }
        func rate(_ value: Double) -> Double { split - 10 - (split - 30) * min(value, most) / most }
        func low(_ share: Double) -> Double { height - 25 - (height - split - 35) * share }
        var parts = [
            "<svg xmlns='http://www.w3.org/2000/svg' width='\(Int(width))' height='\(Int(height))' font-family='sans-serif' font-size='11'>",
            "<rect width='100%' height='100%' fill='white'/><text x='\(left)' y='14' font-size='13'>\(scenario.name)</text>",
        ]
        for step in 0...4 {
            let value = most * Double(step) / 4
            parts.append(
                "<line x1='\(left)' x2='\(width - 10)' y1='\(rate(value))' y2='\(rate(value))' stroke='#eee'/>")
            parts.append("<text x='4' y='\(rate(value) + 4)'>\(Int(value / 1e3)) k</text>")
        }
        for second in stride(from: 0.0, through: end, by: end > 60 ? 20 : 5) {
            parts.append("<text x='\(x(second))' y='\(height - 8)'>\(Int(second)) s</text>")
        }
        parts.append("<text x='4' y='\(low(1) + 4)'>\(Int(wait)) ms</text>")
        if samples.contains(where: { $0.capacity > 0 }) {
            parts.append(line("#999", { rate($0.capacity) }, "stroke-dasharray='4 2'"))
        }
        parts.append(line("#1a9850", { rate($0.rate) }))
        parts.append(line("#2166ac", { rate($0.estimate) }))
        parts.append(line("#d73027", { low($0.wait / wait) }))
        let count = scenario.views.count
        for view in 0..<min(count, 4) {
            parts.append(line("black", { low(Double(($0.layers.count > view ? $0.layers[view] : -1) + 1) / 4) }))
        }
        return parts.joined(separator: "\n") + "\n</svg>\n"
    }
}
