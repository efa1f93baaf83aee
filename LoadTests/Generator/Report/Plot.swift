import Foundation

/// A line plot as inline SVG.
struct Plot {
    /// One line of it.
    struct Line {
        var name: String
        var points: [(x: Double, y: Double)]
    }

    var title: String
    var unit: String
    var lines: [Line]

    private static let width = 640.0
    private static let height = 220.0
    private static let left = 52.0
    private static let bottom = 26.0

    /// The plot with its title and legend as HTML.
    var html: String {
        let top = Self.niceCeiling(lines.flatMap { $0.points.map(\.y) }.max() ?? 1)
        let end = max(1, lines.flatMap { $0.points.map(\.x) }.max() ?? 1)
        var svg = "<svg viewBox=\"0 0 \(Int(Self.width)) \(Int(Self.height))\" role=\"img\" aria-label=\"\(title)\">"
        for step in 0...4 {
            let value = top * Double(step) / 4
            let y = Self.y(value, top)
            svg += "<line class=\"grid\" x1=\"\(Self.left)\" x2=\"\(Self.width)\" y1=\"\(text(y))\" y2=\"\(text(y))\"/>"
            svg += "<text x=\"\(Self.left - 6)\" y=\"\(text(y + 4))\" text-anchor=\"end\">\(Self.label(value))</text>"
        }
        for step in 0...5 {
            let value = end * Double(step) / 5
            let x = Self.x(value, end)
            let anchor = step == 0 ? "start" : step == 5 ? "end" : "middle"
            svg +=
                "<text x=\"\(text(x))\" y=\"\(Self.height - 6)\" text-anchor=\"\(anchor)\">\(Self.label(value.rounded())) s</text>"
        }
        for (index, line) in lines.enumerated() {
            let points = line.points.map { "\(text(Self.x($0.x, end))),\(text(Self.y($0.y, top)))" }
            svg += "<polyline class=\"line\(index)\" points=\"\(points.joined(separator: " "))\"/>"
        }
        let legend = lines.enumerated().map { "<span class=\"key line\($0.offset)\">\($0.element.name)</span>" }
        return
            "<figure><figcaption>\(title) <small>\(unit)</small> \(legend.joined(separator: " "))</figcaption>\(svg)</svg></figure>"
    }

    private func text(_ value: Double) -> String { String(format: "%.1f", value) }
    private static func x(_ value: Double, _ end: Double) -> Double { left + value / end * (width - left - 4) }
    private static func y(_ value: Double, _ top: Double) -> Double {
        8 + (1 - value / top) * (height - bottom - 8)
    }

    /// 1, 2 or 5 times a power of ten, at least `value`.
    static func niceCeiling(_ value: Double) -> Double {
        guard value > 0 else { return 1 }
        let power = pow(10, floor(log10(value)))
        return ([1, 2, 5].first { $0 * power >= value } ?? 10) * power
    }

    static func label(_ value: Double) -> String {
        if value >= 1_000_000 { return String(format: "%g M", value / 1_000_000) }
        if value >= 10_000 { return String(format: "%g k", value / 1_000) }
        return String(format: value >= 1_000 ? "%.0f" : "%.3g", value)
    }
}
