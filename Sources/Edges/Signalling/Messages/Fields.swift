import EdgeSupport
import MediaControl

/// Any member name.
struct AnyKey: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }

    init(_ name: String) { stringValue = name }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

/// The members of one JSON object, read by name; unknown ones are never looked at, and `null` counts as absent.
struct Fields {
    private let container: KeyedDecodingContainer<AnyKey>

    init(_ container: KeyedDecodingContainer<AnyKey>) { self.container = container }

    func text(_ name: String) throws(SignallingError) -> String? { try value(name, "a string") }
    func flag(_ name: String) throws(SignallingError) -> Bool? { try value(name, "true or false") }
    func integer(_ name: String) throws(SignallingError) -> Int64? { try value(name, "a whole number") }

    func number(_ name: String) throws(SignallingError) -> Double? { try value(name, "a number") }

    func texts(_ name: String) throws(SignallingError) -> [String]? { try value(name, "an array of strings") }
    func requiredText(_ name: String) throws(SignallingError) -> String { try required(text(name), name) }
    func requiredFlag(_ name: String) throws(SignallingError) -> Bool { try required(flag(name), name) }

    func required<Value>(_ value: Value?, _ name: String) throws(SignallingError) -> Value {
        guard let value else { throw .malformed(JSONFault(container.codingPath, AnyKey(name), .missing)) }
        return value
    }

    /// What is wrong with the field `name`: it must be something else.
    func fault(_ name: String, wanted: String) -> JSONFault {
        JSONFault(container.codingPath, AnyKey(name), .unexpected(wanted: wanted))
    }

    /// A connection's name: 1 to 32 of A-Z, a-z, 0-9, "_" and "-".
    func connection(_ name: String = "connection") throws(SignallingError) -> String {
        let text = try requiredText(name)
        guard (1...32).contains(text.utf8.count), text.utf8.allSatisfy(Self.isNameByte) else {
            throw .invalid(fault(name, wanted: "1 to 32 of A-Z, a-z, 0-9, _ and -"))
        }
        return text
    }

    /// A track's sid, mid or client's id. The longest msid id in use has 64 characters.
    func track() throws(SignallingError) -> String {
        let text = try requiredText("track")
        guard (1...256).contains(text.utf8.count) else { throw .invalid(fault("track", wanted: "1 to 256 bytes")) }
        return text
    }

    /// Pixels of one side.
    func size(_ name: String) throws(SignallingError) -> Int? {
        guard let number = try integer(name) else { return nil }
        guard (1...16_384).contains(number) else { throw .invalid(fault(name, wanted: "1 to 16384")) }
        return Int(number)
    }

    /// A word of a list.
    func word<Word: RawRepresentable & CaseIterable>(_ name: String) throws(SignallingError) -> Word?
    where Word.RawValue == String {
        guard let text = try text(name) else { return nil }
        guard let word = Word(rawValue: text) else {
            throw .invalid(fault(name, wanted: Word.allWords))
        }
        return word
    }

    /// How much something matters.
    func priority() throws(SignallingError) -> TrackPriority? {
        guard let text = try text("priority") else { return nil }
        guard let priority = TrackPriority(word: text) else {
            throw .invalid(fault("priority", wanted: TrackPriority.allCases.map(\.word).joined(separator: ", ")))
        }
        return priority
    }

    /// The layer that `rid`, `height` or `spatial` selects.
    func preference() throws(SignallingError) -> LayerPreference {
        var model = PreferenceModel(.best)
        model.rid = try text("rid")
        model.height = Int(clamping: try integer("height"))
        model.spatial = Int(clamping: try integer("spatial"))
        if let preference = model.value { return preference }
        let wanted = [
            model.rid.map { _ in ("rid", "1 to 16 bytes") }, model.height.map { _ in ("height", "0 to 16384") },
            model.spatial.map { _ in ("spatial", "0 to 7") },
        ].compactMap { $0 }
        guard wanted.count == 1 else {
            let why = JSONFault.Reason.refused("contradicts \(wanted[0].0): at most one of rid, height and spatial")
            throw .invalid(JSONFault(container.codingPath, AnyKey(wanted[1].0), why))
        }
        throw .invalid(fault(wanted[0].0, wanted: wanted[0].1))
    }

    /// The elements of an array of objects.
    func objects(_ name: String) throws(SignallingError) -> [Fields] {
        guard container.contains(AnyKey(name)) else {
            throw .malformed(JSONFault(container.codingPath, AnyKey(name), .missing))
        }
        do {
            var list = try container.nestedUnkeyedContainer(forKey: AnyKey(name))
            var objects: [Fields] = []
            while !list.isAtEnd { objects.append(Fields(try list.nestedContainer(keyedBy: AnyKey.self))) }
            return objects
        } catch {
            throw .malformed(fault(name, wanted: "an array of objects"))
        }
    }

    /// The members of an object; nil when it is absent.
    func object(_ name: String) throws(SignallingError) -> Fields? {
        guard container.contains(AnyKey(name)), (try? container.decodeNil(forKey: AnyKey(name))) != true else {
            return nil
        }
        do {
            return Fields(try container.nestedContainer(keyedBy: AnyKey.self, forKey: AnyKey(name)))
        } catch {
            throw .malformed(fault(name, wanted: "an object"))
        }
    }

    private func value<Value: Decodable>(_ name: String, _ wanted: String) throws(SignallingError) -> Value? {
        do {
            return try container.decodeIfPresent(Value.self, forKey: AnyKey(name))
        } catch {
            throw .malformed(fault(name, wanted: wanted))
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }
}

extension Int {
    fileprivate init?(clamping value: Int64?) {
        guard let value else { return nil }
        self.init(clamping: value)
    }
}
