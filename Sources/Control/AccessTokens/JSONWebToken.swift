import CJWT
import Glibc

/// One libjwt object: claims with an algorithm. Freed in `deinit`.
struct JSONWebToken: ~Copyable {
    private let handle: OpaquePointer

    /// A token with `claims`; nil if the library refuses them.
    init?(_ claims: borrowing JSONObject) {
        var raw: OpaquePointer?
        guard let json = claims.text, jwt_new(&raw) == 0, let raw else { return nil }
        guard jwt_add_grants_json(raw, json) == 0 else {
            jwt_free(raw)
            return nil
        }
        handle = raw
    }

    /// `text` decoded; verified if there is a `secret`, otherwise only parsed.
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

    deinit { jwt_free(handle) }

    /// Whether the header names HS256. The library knows the algorithm only of tokens that it verified, so this reads the text.
    var asksForHS256: Bool { jwt_get_header(handle, "alg").map { strcmp($0, "HS256") == 0 } ?? false }

    /// Whether the library checked an HS256 signature.
    var wasHS256: Bool { jwt_get_alg(handle) == JWT_ALG_HS256 }

    /// The claims; nil if memory runs out.
    var claims: JSONObject? {
        guard let text = jwt_get_grants_json(handle, nil) else { return nil }
        defer { free(text) }
        return JSONObject(String(cString: text))
    }

    /// The signed token in compact form.
    func signed(secret: String) -> String? {
        var secret = secret
        let status = secret.withUTF8 { jwt_set_alg(handle, JWT_ALG_HS256, $0.baseAddress, CInt($0.count)) }
        guard status == 0, let text = jwt_encode_str(handle) else { return nil }
        defer { free(text) }
        return String(cString: text)
    }
}
