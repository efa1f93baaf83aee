import CJansson
import Glibc

/// A JSON object, read and written by Jansson, which libjwt also uses. Freed in `deinit`.
struct JSONObject: ~Copyable {
    private let handle: UnsafeMutablePointer<json_t>

    /// An empty object; nil if memory runs out.
    init?() {
        guard let made = json_object() else { return nil }
        handle = made
    }

    /// The object in `text`; nil if that is not an object.
    init?(_ text: String) {
        var text = text
        // C strings end at NUL; Jansson refuses it, so nothing is truncated silently.
        let read = text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { json_loadb($0.baseAddress, $0.count, 0, nil) }
        }
        guard let read else { return nil }
        guard read.pointee.type == JSON_OBJECT else {
            json_decref(read)
            return nil
        }
        handle = read
    }

    /// A member of another object, which still owns it.
    private init(sharing member: UnsafeMutablePointer<json_t>) {
        handle = json_incref(member)
    }

    deinit { json_decref(handle) }

    // MARK: - Reading

    /// The member called `name`; nil if it is absent or null.
    private func member(_ name: String) -> UnsafeMutablePointer<json_t>? {
        guard let value = json_object_get(handle, name), value.pointee.type != JSON_NULL else { return nil }
        return value
    }

    /// The text of a member of at most `limit` bytes; nil if it is absent or null. Another type is a bad claim.
    func string(_ name: String, limit: Int) throws(AccessTokenError) -> String? {
        guard let value = member(name) else { return nil }
        guard let text = json_string_value(value), json_string_length(value) <= limit else { throw .badClaim }
        return String(cString: text)
    }

    func bool(_ name: String) throws(AccessTokenError) -> Bool? {
        switch member(name)?.pointee.type {
        case nil: return nil
        case JSON_TRUE: return true
        case JSON_FALSE: return false
        default: throw .badClaim
        }
    }

    /// The number of a member. Fractions (Python's `time.time()`) are truncated.
    func integer(_ name: String) throws(AccessTokenError) -> Int64? {
        guard let value = member(name) else { return nil }
        switch value.pointee.type {
        case JSON_INTEGER: return Int64(json_integer_value(value))
        case JSON_REAL:
            let real = json_real_value(value)
            guard real >= 0, real < 9e15 else { throw .badClaim }
            return Int64(real)
        default: throw .badClaim
        }
    }

    func object(_ name: String) throws(AccessTokenError) -> JSONObject? {
        guard let value = member(name) else { return nil }
        guard value.pointee.type == JSON_OBJECT else { throw .badClaim }
        return JSONObject(sharing: value)
    }

    /// The texts of an array of at most `limit` texts.
    func strings(_ name: String, limit: Int) throws(AccessTokenError) -> [String]? {
        guard let value = member(name) else { return nil }
        guard value.pointee.type == JSON_ARRAY, json_array_size(value) <= limit else { throw .badClaim }
        var texts: [String] = []
        for index in 0..<json_array_size(value) {
            guard let text = json_string_value(json_array_get(value, index)) else { throw .badClaim }
            texts.append(String(cString: text))
        }
        return texts
    }

    /// Calls `body` with each object of an array of at most `limit` objects; false if the array is absent or null.
    func forEachObject(
        _ name: String, limit: Int, _ body: (borrowing JSONObject) throws(AccessTokenError) -> Void
    ) throws(AccessTokenError) -> Bool {
        guard let value = member(name) else { return false }
        guard value.pointee.type == JSON_ARRAY, json_array_size(value) <= limit else { throw .badClaim }
        for index in 0..<json_array_size(value) {
            guard let element = json_array_get(value, index), element.pointee.type == JSON_OBJECT else {
                throw .badClaim
            }
            try body(JSONObject(sharing: element))
        }
        return true
    }

    /// The number of members.
    var count: Int { json_object_size(handle) }

    /// The texts of an object of at most `limit` members, whose names and texts have at most `bytes` bytes in total.
    func texts(_ name: String, limit: Int, bytes: Int) throws(AccessTokenError) -> [String: String]? {
        guard let value = member(name) else { return nil }
        guard value.pointee.type == JSON_OBJECT, json_object_size(value) <= limit else { throw .badClaim }
        var texts: [String: String] = [:]
        var left = bytes
        var iterator = json_object_iter(value)
        while let current = iterator {
            guard let rawKey = json_object_iter_key(current),
                let rawText = json_string_value(json_object_iter_value(current))
            else { throw .badClaim }
            let (key, text) = (String(cString: rawKey), String(cString: rawText))
            left -= key.utf8.count + text.utf8.count
            guard left >= 0 else { throw .badClaim }
            texts[key] = text
            iterator = json_object_iter_next(value, current)
        }
        return texts
    }

    // MARK: - Writing

    // Each returns whether it succeeded: it fails if memory runs out, or for text that JSON cannot represent.
    func set(_ name: String, _ value: String) -> Bool { set(name, json_string(value)) }
    func set(_ name: String, _ value: Int64) -> Bool { set(name, json_integer(json_int_t(value))) }
    func set(_ name: String, _ value: Bool) -> Bool { set(name, value ? json_true() : json_false()) }
    func set(_ name: String, _ value: borrowing JSONObject) -> Bool { set(name, json_incref(value.handle)) }

    func set(_ name: String, _ values: [String]) -> Bool {
        guard let array = json_array() else { return false }
        for value in values where json_array_append_new(array, json_string(value)) != 0 {
            json_decref(array)
            return false
        }
        return set(name, array)
    }

    /// Sets an array of `count` objects, each of which `write` fills.
    func set(_ name: String, count: Int, _ write: (borrowing JSONObject, Int) -> Bool) -> Bool {
        guard let array = json_array() else { return false }
        for index in 0..<count {
            guard let element = JSONObject(), write(element, index),
                json_array_append_new(array, json_incref(element.handle)) == 0
            else {
                json_decref(array)
                return false
            }
        }
        return set(name, array)
    }

    private func set(_ name: String, _ value: UnsafeMutablePointer<json_t>?) -> Bool {
        json_object_set_new(handle, name, value) == 0
    }

    /// The object as JSON; nil if memory runs out.
    var text: String? {
        guard let text = json_dumps(handle, 0) else { return nil }
        defer { free(text) }
        return String(cString: text)
    }
}
