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

    func requiredText(_ name: String) throws(SignallingError) -> String { try required(text(name), name) }
    func requiredFlag(_ name: String) throws(SignallingError) -> Bool { try required(flag(name), name) }

    func required<Value>(_ value: Value?, _ name: String) throws(SignallingError) -> Value {
        guard let value else { throw .malformed("The field \(name) is missing.") }
        return value
    }

    /// A connection's name: 1 to 32 of A-Z, a-z, 0-9, "_" and "-".
    func connection(_ name: String = "connection") throws(SignallingError) -> String {
        let text = try requiredText(name)
        guard (1...32).contains(text.utf8.count), text.utf8.allSatisfy(Self.isNameByte) else {
            throw .invalid("The field \(name) is not 1 to 32 of A-Za-z0-9_-.")
        }
        return text
    }

    /// A track's sid, mid or client's id. The longest msid id in use has 64 characters.
    func track() throws(SignallingError) -> String {
        let text = try requiredText("track")
        guard (1...256).contains(text.utf8.count) else { throw .invalid("The field track is empty or too long.") }
        return text
    }

    /// Pixels of one side.
    func size(_ name: String) throws(SignallingError) -> Int? {
        guard let number = try integer(name) else { return nil }
        guard (1...16_384).contains(number) else { throw .invalid("The field \(name) is out of range.") }
        return Int(number)
    }

    /// A word of a list.
    func word<Word>(_ name: String, _ read: (String) -> Word?) throws(SignallingError) -> Word? {
        guard let text = try text(name) else { return nil }
        guard let word = read(text) else { throw .invalid("The field \(name) has an unknown word.") }
        return word
    }

    /// The layer that `rid`, `height` or `spatial` asks for.
    func preference() throws(SignallingError) -> LayerPreference {
        var model = PreferenceModel(.best)
        model.rid = try text("rid")
        model.height = Int(clamping: try integer("height"))
        model.spatial = Int(clamping: try integer("spatial"))
        guard let preference = model.value else {
            throw .invalid("At most one of rid, height and spatial, within its range.")
        }
        return preference
    }

    /// The elements of an array of objects.
    func objects(_ name: String) throws(SignallingError) -> [Fields] {
        guard container.contains(AnyKey(name)) else { throw .malformed("The field \(name) is missing.") }
        do {
            var list = try container.nestedUnkeyedContainer(forKey: AnyKey(name))
            var objects: [Fields] = []
            while !list.isAtEnd { objects.append(Fields(try list.nestedContainer(keyedBy: AnyKey.self))) }
            return objects
        } catch {
            throw .malformed("The field \(name) is not an array of objects.")
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
            throw .malformed("The field \(name) is not an object.")
        }
    }

    private func value<Value: Decodable>(_ name: String, _ wanted: String) throws(SignallingError) -> Value? {
        do {
            return try container.decodeIfPresent(Value.self, forKey: AnyKey(name))
        } catch {
            throw .malformed("The field \(name) is not \(wanted).")
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
