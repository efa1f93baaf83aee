/// Why a token was refused. `rawValue` is the stable code of errors on every edge.
public enum AccessTokenError: String, Error, Sendable, Hashable, CaseIterable {
    /// There was no token.
    case missing = "token_missing"
    /// Longer than `AccessTokenLimits.tokenBytes`.
    case tooLong = "token_too_long"
    /// Not three dot-separated base64url parts with JSON objects in them.
    case malformed = "token_malformed"
    /// Not HS256.
    case algorithmNotAllowed = "token_algorithm_not_allowed"
    /// `iss` names no configured key.
    case unknownKey = "token_unknown_key"
    /// The signature does not match.
    case badSignature = "token_bad_signature"
    /// `exp` has passed.
    case expired = "token_expired"
    /// `exp` is absent: a token that never expires is not accepted.
    case noExpiry = "token_no_expiry"
    /// `nbf` is still in the future.
    case notYetValid = "token_not_yet_valid"
    /// A claim has the wrong type or is too long.
    case badClaim = "token_bad_claim"
    /// An operator revoked the token, or all older ones of its identity.
    case revoked = "token_revoked"
    /// The token is valid but does not permit this.
    case notPermitted = "token_not_permitted"
    /// A token could not be made: a value is too long or the key is unusable.
    case cannotSign = "token_cannot_sign"
}

/// Accepted sizes; each is far above real use and small enough that a flood of tokens costs little.
public enum AccessTokenLimits {
    /// A whole token. Metadata of 4 KiB in base64 is 5.5 KiB; the rest is claims and signature.
    public static let tokenBytes = 16_384
    /// `sub`: 256 characters, of four bytes at most. `Rooms` counts characters.
    public static let identityBytes = 1_024
    /// `name`, like `sub`.
    public static let nameBytes = 1_024
    /// `metadata`.
    public static let metadataBytes = 8_192
    /// Members of `attributes`, whose names and texts together may have at most as many bytes as `metadata`.
    public static let attributeCount = 64
    /// `kind`: one short word.
    public static let kindBytes = 32
    /// `jti`: a UUID has 36 characters.
    public static let tokenIDBytes = 256
    /// `video.room`, like `sub`.
    public static let roomBytes = 1_024
    /// Rules in `video.subscribeRules`: each is checked for each track; a person writes a few.
    public static let subscribeRules = 64
    /// A signing secret shorter than this is guessable offline from one token (RFC 7518 section 3.2 asks for 32).
    public static let secretMinimumBytes = 32
}
