import EdgeSupport

/// Rows under headings, for people.
struct TextTable {
    private let headings: [String]
    private var rows: [[String]] = []

    init(_ headings: String...) { self.headings = headings }

    mutating func add(_ cells: String...) { rows.append(cells.map(Self.visible)) }

    /// Columns as wide as their widest cell; the last is not padded.
    var text: String {
        let all = [headings] + rows
        let widths = headings.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        return all.map { row in
            row.enumerated().map { column, cell in
                column == row.count - 1 ? cell : cell + String(repeating: " ", count: widths[column] - cell.count + 2)
            }.joined()
        }.joined(separator: "\n")
    }

    private static func visible(_ cell: String) -> String {
        let text = safe(cell)
        return text.isEmpty ? "-" : text
    }

    /// Text that others have chosen, such as names, must not control the terminal.
    static func safe(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { $0.value < 0x20 || (0x7f..<0xa0).contains($0.value) ? "\u{fffd}" : $0 }))
    }
}

extension JSONValue {
    /// A member of an object; null if there is none.
    subscript(name: String) -> JSONValue {
        if case .object(let members) = self { members[name] ?? .null } else { .null }
    }

    /// The elements of an array.
    var elements: [JSONValue] { if case .array(let elements) = self { elements } else { [] } }

    /// The value as a cell shows it: empty if there is none.
    var cell: String {
        switch self {
        case .null: ""
        case .flag(let flag): flag ? "yes" : "no"
        case .integer(let number): "\(number)"
        case .number(let number): "\((number * 10).rounded() / 10)"
        case .text(let text): text
        case .array(let elements): elements.map(\.cell).joined(separator: ",")
        case .object: "…"
        }
    }
}
