import CJWT
import Glibc

/// One libjwt object: a JSON object of grants with an algorithm. Freed in `deinit`.
///
/// A nested object such as `video` is read by loading its JSON text as the grants of a second token, so that no JSON
/// parser other than the library's looks at a token.
struct JSONWebToken: ~Copyable {
    private let handle: OpaquePointer

    /// An empty token.
    init?() {
        var raw: OpaquePointer?
        guard jwt_new(&raw) == 0, let raw else { return nil }
        handle = raw
    }

    /// `text` decoded; verified when there is a `secret`, else only parsed.
    init?(decoding text: String, secret: String?) {
        var raw: OpaquePointer?
        let status: CInt
        if let secret {
            var secret = secret
            status = secret.withUTF8 { jwt_decode(&raw, text, $0.baseAddress, CInt($0.count)) }
        } else {
            status = jwt_decode(&raw, text, nil, 0)
        }
        guard status == 0, let raw else { return nil }
        handle = raw
    }

    /// A token whose grants are the members of the object in `json`.
    init?(members json: String) {
        var raw: OpaquePointer?
        guard jwt_new(&raw) == 0, let raw else { return nil }
        guard jwt_add_grants_json(raw, json) == 0 else {
            jwt_free(raw)
            return nil
        }
        handle = raw
    }

    deinit { jwt_free(handle) }

    /// Whether the header asks for HS256. The library knows the algorithm only of what it verified, hence the text.
    var asksForHS256: Bool { jwt_get_header(handle, "alg").map { strcmp($0, "HS256") == 0 } ?? false }

    /// Whether the library checked an HS256 signature.
    var wasHS256: Bool { jwt_get_alg(handle) == JWT_ALG_HS256 }

    /// The text of grant `name`; nil when it is absent. A grant of another type is a bad claim.
    func string(_ name: String, limit: Int) throws(AccessTokenError) -> String? {
        guard let value = jwt_get_grant(handle, name) else {
            if errno == ENOENT { return nil }
            throw .badClaim
        }
        guard strlen(value) <= limit else { throw .badClaim }
        return String(cString: value)
    }

    /// The truth of grant `name`; nil when it is absent or null. Read from its JSON text, because the library's getter
    /// does not tell a wrong type from a value.
    func bool(_ name: String) throws(AccessTokenError) -> Bool? {
        switch json(name) {
        case nil, "null": return nil
        case "true": return true
        case "false": return false
        default: throw .badClaim
        }
    }

    /// The number in grant `name`; nil when it is absent. Fractions (Python's `time.time()`) are cut.
    func integer(_ name: String) throws(AccessTokenError) -> Int64? {
        guard let text = json(name), text != "null" else { return nil }
        if let value = Int64(text) { return value }
        guard let real = Double(text), real >= 0, real < 9e15 else { throw .badClaim }
        return Int64(real)
    }

    /// The JSON text of grant `name`, or of all grants; nil when it is absent.
    func json(_ name: String?) -> String? {
        guard let text = jwt_get_grants_json(handle, name) else { return nil }
        defer { free(text) }
        return String(cString: text)
    }

    /// Whether all went well so far; adding to a token fails only for want of memory or for bad text.
    func set(_ name: String, _ value: String) -> Bool { jwt_add_grant(handle, name, value) == 0 }
    func set(_ name: String, _ value: Int64) -> Bool { jwt_add_grant_int(handle, name, Int(value)) == 0 }
    func set(_ name: String, _ value: Bool) -> Bool { jwt_add_grant_bool(handle, name, value ? 1 : 0) == 0 }
    func merge(json: String) -> Bool { jwt_add_grants_json(handle, json) == 0 }

    /// The signed token in compact form.
    func signed(secret: String) -> String? {
        var secret = secret
        let status = secret.withUTF8 { jwt_set_alg(handle, JWT_ALG_HS256, $0.baseAddress, CInt($0.count)) }
        guard status == 0, let text = jwt_encode_str(handle) else { return nil }
        defer { free(text) }
        return String(cString: text)
    }
}
