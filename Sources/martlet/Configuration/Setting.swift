import AccessTokens
import Primitives

/// One thing that can be configured: its path in the file, what it means, what its value may be, and where it goes.
///
/// The table in `Setting+All.swift` is all there is: the file, the environment, `check-config` and the README follow from it.
struct Setting: Sendable {
    /// "http.port"; in the environment MARTLET_HTTP_PORT.
    let path: String
    /// What it is, for people.
    let summary: String
    /// What a value must be: "true or false", "0 to 65535".
    let wants: String
    let take: @Sendable (inout Configuration, [String]) throws(SettingError) -> Void
    /// The value that a configuration has, as the file would say it; empty for none.
    let show: @Sendable (Configuration) -> String

    /// The environment variable that overrides it.
    var variable: String {
        "MARTLET_" + path.uppercased().map { $0 == "." ? "_" : String($0) }.joined()
    }

    /// The rows of the table that the README and `martlet help settings` show: path, standard, what it is.
    static var rows: [(path: String, standard: String, summary: String)] {
        let standard = Configuration()
        let settings = all.map { setting -> (path: String, standard: String, summary: String) in
            (setting.path, setting.show(standard), "\(setting.summary) (\(setting.wants))")
        }
        let secret = "the secret of the API key NAME (\(AccessTokenLimits.secretMinimumBytes) bytes or more)"
        return settings + [("keys.NAME", "", secret)]
    }
}

/// What is wrong with a value.
struct SettingError: Error, Hashable {
    var problem: String
}

/// Where a setting's value lives.
typealias Place<Value> = any WritableKeyPath<Configuration, Value> & Sendable

extension Setting {
    /// One value that `parse` takes; what it refuses is told with what is wanted.
    static func value<Value>(
        _ path: String, _ summary: String, wants: String, _ place: Place<Value>,
        parse: @escaping @Sendable (String) -> Value?, show: @escaping @Sendable (Value) -> String
    ) -> Setting {
        Setting(path: path, summary: summary, wants: wants) { (configuration, values) throws(SettingError) in
            guard values.count == 1 else { throw SettingError(problem: "wants one value, not a list") }
            guard let value = parse(values[0]) else { throw SettingError(problem: "'\(values[0])' is not \(wants)") }
            configuration[keyPath: place] = value
        } show: {
            show($0[keyPath: place])
        }
    }

    /// Any number of values that `parse` takes one by one.
    static func list<Value>(
        _ path: String, _ summary: String, wants: String, _ place: Place<[Value]>,
        parse: @escaping @Sendable (String) -> Value?, show: @escaping @Sendable (Value) -> String
    ) -> Setting {
        Setting(path: path, summary: summary, wants: wants) { (configuration, values) throws(SettingError) in
            configuration[keyPath: place] = try values.map { (text) throws(SettingError) in
                guard let value = parse(text) else { throw SettingError(problem: "'\(text)' is not one of: \(wants)") }
                return value
            }
        } show: {
            $0[keyPath: place].map(show).joined(separator: ", ")
        }
    }

    static func text(_ path: String, _ summary: String, wants: String = "text", _ place: Place<String>) -> Setting {
        value(path, summary, wants: wants, place, parse: { $0.isEmpty ? nil : $0 }, show: { $0 })
    }

    static func file(_ path: String, _ summary: String, _ place: Place<String?>) -> Setting {
        value(path, summary, wants: "a file", place, parse: { $0.isEmpty ? nil : .some($0) }, show: { $0 ?? "" })
    }

    static func flag(_ path: String, _ summary: String, _ place: Place<Bool>) -> Setting {
        value(path, summary, wants: "true or false", place, parse: { Bool($0) }, show: { String($0) })
    }

    static func number<Number: FixedWidthInteger & Sendable>(
        _ path: String, _ summary: String, _ range: ClosedRange<Number>, _ place: Place<Number>
    ) -> Setting {
        value(
            path, summary, wants: "\(range.lowerBound) to \(range.upperBound)", place,
            parse: { Number($0).flatMap { range.contains($0) ? $0 : nil } }, show: { String($0) })
    }

    static func seconds(
        _ path: String, _ summary: String, _ range: ClosedRange<Int64>, _ place: Place<TimeInterval>
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
