import EdgeSupport
import MediaControl
import Primitives
import Recorder
import Rooms

/// One member of a policy in JSON: its name, how it is read and checked, and how it is written.
struct PolicyMember: Sendable {
    typealias Fields = KeyedDecodingContainer<StrictKeys>
    typealias Place<Value> = any WritableKeyPath<PolicyDocument, Value?> & Sendable

    let name: String
    let read: @Sendable (Fields, inout PolicyDocument) throws -> Void
    let write: @Sendable (PolicyDocument, inout KeyedEncodingContainer<StrictKeys>) throws -> Void

    /// A member whose form in JSON is `Form`. `value` turns what was read into the document's value, nil if that is not allowed; `wanted` describes what is.
    private init<Form: Codable & Sendable, Value>(
        _ name: String, _ place: Place<Value>, wanted: String, form: @escaping @Sendable (Value) -> Form,
        decode: @escaping @Sendable (Fields, StrictKeys) throws -> Form?,
        value: @escaping @Sendable (Form) -> Value?
    ) {
        self.name = name
        let key = StrictKeys(stringValue: name)
        read = { fields, document in
            guard let read = try decode(fields, key) else { return }
            guard let value = value(read) else {
                throw JSONFault(fields.codingPath, key, .unexpected(wanted: wanted))
            }
            document[keyPath: place] = value
        }
        write = { document, fields in
            if let value = document[keyPath: place] { try fields.encode(form(value), forKey: key) }
        }
    }

    static func flag(_ name: String, _ place: Place<Bool>) -> Self {
        Self(
            name, place, wanted: "true or false", form: { $0 },
            decode: { try $0.decodeIfPresent(Bool.self, forKey: $1) }, value: { $0 })
    }

    static func number(_ name: String, _ place: Place<Int>, _ range: ClosedRange<Int>) -> Self {
        Self(
            name, place, wanted: range.words, form: { $0 }, decode: { try $0.wholeNumber($1) },
            value: { range.contains($0) ? $0 : nil })
    }

    static func numbers(_ name: String, _ place: Place<[Int]>, _ range: ClosedRange<Int>) -> Self {
        Self(
            name, place, wanted: "a list of \(range.words)", form: { $0 },
            decode: { try $0.decodeIfPresent([Int].self, forKey: $1) },
            value: { $0.count <= Bounds.words && $0.allSatisfy(range.contains) ? $0 : nil })
    }

    static func bitrate(_ name: String, _ place: Place<Bitrate>, _ range: ClosedRange<Int64>) -> Self {
        Self(
            name, place, wanted: range.words, form: { $0.bitsPerSecond }, decode: { try $0.wholeNumber($1) },
            value: { range.contains($0) ? .bitsPerSecond($0) : nil })
    }

    static func seconds(_ name: String, _ place: Place<TimeSpan>, _ range: ClosedRange<Int64>) -> Self {
        Self(
            name, place, wanted: range.words, form: { Int64($0.seconds) }, decode: { try $0.wholeNumber($1) },
            value: { range.contains($0) ? .seconds($0) : nil })
    }

    static func megabytes(_ name: String, _ place: Place<Int64>, _ range: ClosedRange<Int64>) -> Self {
        Self(
            name, place, wanted: range.words, form: { $0 >> 20 }, decode: { try $0.wholeNumber($1) },
            value: { range.contains($0) ? $0 << 20 : nil })
    }

    static func fileName(_ name: String, _ place: Place<String>) -> Self {
        Self(
            name, place, wanted: FileNameTemplate.form, form: { $0 },
            decode: { try $0.decodeIfPresent(String.self, forKey: $1) }, value: { FileNameTemplate($0)?.text })
    }

    static func milliseconds(_ name: String, _ place: Place<TimeSpan>, _ range: ClosedRange<Int64>) -> Self {
        Self(
            name, place, wanted: range.words, form: { $0.nanoseconds / 1_000_000 }, decode: { try $0.wholeNumber($1) },
            value: { range.contains($0) ? .milliseconds($0) : nil })
    }

    static func word<Word: RawRepresentable<String> & CaseIterable & Sendable>(
        _ name: String, _ place: Place<Word>
    ) -> Self {
        let words = Word.allCases.map(\.rawValue)
        return Self(
            name, place, wanted: words.joined(separator: words.count > 2 ? ", " : " or "), form: \.rawValue,
            decode: { try $0.decodeIfPresent(String.self, forKey: $1) }, value: { Word(rawValue: $0) })
    }

    /// Some of `all`, in an order that matters.
    static func list<Value: Sendable>(
        _ name: String, _ place: Place<[Value]>, of all: [Value], _ word: any KeyPath<Value, String> & Sendable
    ) -> Self {
        Self(
            name, place, wanted: "a list of: \(all.map { $0[keyPath: word] }.joined(separator: ", "))",
            form: { $0.map { $0[keyPath: word] } },
            decode: { try $0.decodeIfPresent([String].self, forKey: $1) },
            value: { words in
                guard words.count <= Bounds.words else { return nil }
                let values = words.compactMap { text in all.first { $0[keyPath: word] == text } }
                return values.count == words.count ? values : nil
            })
    }

    /// Some of `all`, in no order.
    static func set<Value: Hashable & Sendable>(
        _ name: String, _ place: Place<Set<Value>>, of all: [Value], _ word: any KeyPath<Value, String> & Sendable
    ) -> Self {
        Self(
            name, place, wanted: "a list of: \(all.map { $0[keyPath: word] }.joined(separator: ", "))",
            form: { $0.map { $0[keyPath: word] }.sorted() },
            decode: { try $0.decodeIfPresent([String].self, forKey: $1) },
            value: { words in
                guard words.count <= Bounds.words else { return nil }
                let values = words.compactMap { text in all.first { $0[keyPath: word] == text } }
                return values.count == words.count ? Set(values) : nil
            })
    }

    static func identities(_ name: String, _ place: Place<Set<String>>, most: Int) -> Self {
        Self(
            name, place, wanted: "a list of at most \(most) identities", form: { $0.sorted() },
            decode: { try $0.decodeIfPresent([String].self, forKey: $1) },
            value: { names in
                names.count <= most && names.allSatisfy { !$0.isEmpty && TextRule.identifier.fault(in: $0) == nil }
                    ? Set(names) : nil
            })
    }

    static func subscribeRules(_ name: String, _ place: Place<[SubscribeRule]>) -> Self {
        Self(
            name, place, wanted: "at most \(SubscribeRule.maximumCount) subscribe rules",
            form: { $0.map(SubscribeRuleModel.init) },
            decode: { try $0.decodeIfPresent([SubscribeRuleModel].self, forKey: $1) },
            value: { $0.count <= SubscribeRule.maximumCount ? $0.map(\.rule) : nil })
    }
}

/// The members about bandwidth, which are next to the others in a policy and are checked together.
struct BandwidthMembers {
    static let names = [
        "bandwidthMode", "maxVideoSubscriptions", "maxDownlinkBitrate", "maxUplinkBitrate", "shortage",
        "oversendBitrate",
    ]
    private var model = BandwidthModel()

    init(_ profile: BandwidthProfile) { model = BandwidthModel(profile) }

    init(_ fields: KeyedDecodingContainer<StrictKeys>) throws {
        model.mode = try fields.decodeIfPresent(String.self, forKey: StrictKeys(stringValue: "bandwidthMode"))
        model.maxVideoSubscriptions = try fields.wholeNumber(StrictKeys(stringValue: "maxVideoSubscriptions"))
        model.maxDownlinkBitrate = try fields.wholeNumber(StrictKeys(stringValue: "maxDownlinkBitrate"))
        model.maxUplinkBitrate = try fields.wholeNumber(StrictKeys(stringValue: "maxUplinkBitrate"))
        model.shortage = try fields.decodeIfPresent(String.self, forKey: StrictKeys(stringValue: "shortage"))
        model.oversendBitrate = try fields.wholeNumber(StrictKeys(stringValue: "oversendBitrate"))
    }

    /// The profile in these members. In a participant's own profile the mode is called `mode`, in a policy `bandwidthMode`.
    var profile: Result<BandwidthProfile, BandwidthModel.WrongMember> {
        model.profile.mapError { wrong in
            var wrong = wrong
            if wrong.name == "mode" { wrong.name = "bandwidthMode" }
            return wrong
        }
    }

    func write(to fields: inout KeyedEncodingContainer<StrictKeys>) throws {
        try fields.encodeIfPresent(model.mode, forKey: StrictKeys(stringValue: "bandwidthMode"))
        let videos = model.maxVideoSubscriptions
        try fields.encodeIfPresent(videos, forKey: StrictKeys(stringValue: "maxVideoSubscriptions"))
        try fields.encodeIfPresent(model.maxDownlinkBitrate, forKey: StrictKeys(stringValue: "maxDownlinkBitrate"))
        try fields.encodeIfPresent(model.maxUplinkBitrate, forKey: StrictKeys(stringValue: "maxUplinkBitrate"))
        try fields.encodeIfPresent(model.shortage, forKey: StrictKeys(stringValue: "shortage"))
        try fields.encodeIfPresent(model.oversendBitrate, forKey: StrictKeys(stringValue: "oversendBitrate"))
    }
}

extension KeyedDecodingContainer {
    /// Reads any number first: for one that is no integer, the decoder does not name the place.
    func wholeNumber<Number: FixedWidthInteger>(_ key: Key) throws -> Number? {
        let wrong = JSONFault(codingPath, key, .unexpected(wanted: "a whole number"))
        do {
            guard let number = try decodeIfPresent(Double.self, forKey: key) else { return nil }
            guard let whole = Number(exactly: number) else { throw wrong }
            return whole
        } catch DecodingError.typeMismatch {
            throw wrong
        }
    }

    /// The same within a range.
    func wholeNumber(_ key: Key, in range: ClosedRange<Int>) throws -> Int? {
        guard let number: Int = try wholeNumber(key) else { return nil }
        guard range.contains(number) else { throw JSONFault(codingPath, key, .unexpected(wanted: range.words)) }
        return number
    }
}

extension ClosedRange {
    fileprivate var words: String { "\(lowerBound) to \(upperBound)" }
}
