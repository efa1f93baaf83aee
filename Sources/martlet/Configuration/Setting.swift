import AccessTokens
import Primitives

/// One setting: its path in the file, its meaning, its possible values, and the property that it sets.
///
/// The tables that `all` joins are the only source: the file, the environment, `check-config` and the README follow from them.
struct Setting: Sendable {
    /// "http.port"; in the environment MARTLET_HTTP_PORT.
    let path: String
    /// What it is, for people.
    let summary: String
    /// What a value must be: "true or false", "0 to 65535".
    let wants: String
    /// Whether it has any number of values.
    let isList: Bool
    let apply: @Sendable (inout Configuration, YAMLDocument.Node) throws(SettingError) -> Void
    /// The value in a configuration, as the file would write it; empty for none.
    let show: @Sendable (Configuration) -> String
    /// Gives the first configuration the value of the second one; returns whether the value changed.
    let carry: @Sendable (inout Configuration, Configuration) -> Bool

    init<Value: Equatable & SendableMetatype>(
        path: String, summary: String, wants: String, isList: Bool, place: Place<Value>,
        read: @escaping @Sendable (YAMLDocument.Node) throws(SettingError) -> Value,
        show: @escaping @Sendable (Value) -> String
    ) {
        self.path = path
        self.summary = summary
        self.wants = wants
        self.isList = isList
        apply = { (configuration, node) throws(SettingError) in configuration[keyPath: place] = try read(node) }
        self.show = { show($0[keyPath: place]) }
        carry = { configuration, other in
            defer { configuration[keyPath: place] = other[keyPath: place] }
            return configuration[keyPath: place] != other[keyPath: place]
        }
    }

    /// The environment variable that overrides it.
    var variable: String { Self.variable(of: path) }

    /// The variable of a path: upper case, with `_` for each dot.
    static func variable(of path: String) -> String {
        "MARTLET_" + path.uppercased().map { $0 == "." ? "_" : String($0) }.joined()
    }

    /// The setting with a path.
    static func named(_ path: String) -> Setting? { all.first { $0.path == path } }

    /// What may precede a dot: "http", "http.tls".
    static let sections: [String] = {
        var found: [String] = []
        for setting in all {
            let parts = setting.path.split(separator: ".")
            for count in 1..<max(parts.count, 1) {
                let section = parts[..<count].joined(separator: ".")
                if !found.contains(section) { found.append(section) }
            }
        }
        return found
    }()

    /// The rows of the table that the README and `martlet help settings` show: path, default, what it is.
    static var rows: [(path: String, initial: String, summary: String)] {
        let initial = Configuration()
        let settings = all.map { setting -> (path: String, initial: String, summary: String) in
            (setting.path, setting.show(initial), "\(setting.summary) (\(setting.wants))")
        }
        let secret = "secret of the API key NAME (\(AccessTokenLimits.secretMinimumBytes) bytes or more)"
        return settings + [("keys.NAME", "", secret)]
    }
}

/// What is wrong with a value.
struct SettingError: Error, Hashable {
    var problem: String
    /// The line of the part that is wrong; nil: that of the setting.
    var line: Int?
}

/// Where a setting's value lives.
typealias Place<Value> = any WritableKeyPath<Configuration, Value> & Sendable

extension YAMLDocument.Node {
    /// The single text at this place; `form` describes what is expected.
    func text(_ form: String) throws(SettingError) -> String {
        switch content {
        case .text(let text): return text
        case .none: throw SettingError(problem: "has no value; expected \(form)")
        case .list: throw SettingError(problem: "is a list; expected one value: \(form)")
        case .map: throw SettingError(problem: "is a section; expected one value: \(form)", line: line)
        }
    }

    /// The elements of a list; a single value is a list of one, no value an empty one.
    var elements: [YAMLDocument.Node] {
        switch content {
        case .none: []
        case .list(let elements): elements
        case .text, .map: [self]
        }
    }

    /// The value that `parse` makes of the text.
    func value<Value>(_ form: String, _ parse: (String) -> Value?) throws(SettingError) -> Value {
        let text = try text(form)
        guard let value = parse(text) else {
            throw SettingError(problem: "'\(text)' is not valid; expected \(form)", line: line)
        }
        return value
    }
}

extension Setting {
    /// One value that `parse` accepts; what it refuses is reported with what is expected.
    static func value<Value: Equatable & SendableMetatype>(
        _ path: String, _ summary: String, wants: String, _ place: Place<Value>,
        parse: @escaping @Sendable (String) -> Value?, show: @escaping @Sendable (Value) -> String
    ) -> Setting {
        Setting(
            path: path, summary: summary, wants: wants, isList: false, place: place,
            read: { (node) throws(SettingError) in try node.value(wants, parse) }, show: show)
    }

    /// Any number of values that `parse` accepts one by one.
    static func list<Value: Equatable & SendableMetatype>(
        _ path: String, _ summary: String, wants: String, _ place: Place<[Value]>,
        parse: @escaping @Sendable (String) -> Value?, show: @escaping @Sendable (Value) -> String
    ) -> Setting {
        list(
            path, summary, wants: wants, place,
            element: { (node) throws(SettingError) in try node.value(wants, parse) }, show: show)
    }

    /// Any number of values that `element` reads one by one.
    static func list<Value: Equatable & SendableMetatype>(
        _ path: String, _ summary: String, wants: String, _ place: Place<[Value]>,
        element: @escaping @Sendable (YAMLDocument.Node) throws(SettingError) -> Value,
        show: @escaping @Sendable (Value) -> String
    ) -> Setting {
        Setting(
            path: path, summary: summary, wants: wants, isList: true, place: place,
            read: { (node) throws(SettingError) in try node.elements.map(element) },
            show: { $0.map(show).joined(separator: ", ") })
    }

    static func text(_ path: String, _ summary: String, wants: String = "text", _ place: Place<String>) -> Setting {
        value(path, summary, wants: wants, place, parse: { $0.isEmpty ? nil : $0 }, show: { $0 })
    }

    static func file(_ path: String, _ summary: String, _ place: Place<String?>) -> Setting {
        value(path, summary, wants: "a file", place, parse: { $0.isEmpty ? nil : .some($0) }, show: { $0 ?? "" })
    }

    static func folder(_ path: String, _ summary: String, _ place: Place<String?>) -> Setting {
        value(path, summary, wants: "a folder", place, parse: { $0.isEmpty ? nil : .some($0) }, show: { $0 ?? "" })
    }

    static func flag(_ path: String, _ summary: String, _ place: Place<Bool>) -> Setting {
        value(path, summary, wants: "true or false", place, parse: { Bool($0) }, show: { String($0) })
    }

    static func number<Number: FixedWidthInteger & Sendable>(
        _ path: String, _ summary: String, _ range: ClosedRange<Number>, _ place: Place<Number>, unit: String? = nil
    ) -> Setting {
        let form = "\(range.lowerBound) to \(range.upperBound)"
        return value(
            path, summary, wants: unit.map { "\($0), \(form)" } ?? form, place,
            parse: { Number($0).flatMap { range.contains($0) ? $0 : nil } }, show: { String($0) })
    }

    static func seconds(
        _ path: String, _ summary: String, _ range: ClosedRange<Int64>, _ place: Place<TimeSpan>
    ) -> Setting {
        value(
            path, summary, wants: "seconds, \(range.lowerBound) to \(range.upperBound)", place,
            parse: { Int64($0).flatMap { range.contains($0) ? .seconds($0) : nil } },
            show: { String(Int64($0.seconds)) })
    }

    static func word<Word>(
        _ path: String, _ summary: String, _ words: [(String, Word)], _ place: Place<Word>
    ) -> Setting where Word: Equatable & Sendable {
        value(
            path, summary, wants: words.map(\.0).joined(separator: ", "), place,
            parse: { text in words.first { $0.0 == text }?.1 },
            show: { word in words.first { $0.1 == word }?.0 ?? "" })
    }
}
