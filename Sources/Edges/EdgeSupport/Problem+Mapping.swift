public import AccessTokens
public import HTTPServing
import Primitives
public import Rooms

extension RoomError {
    /// What is wrong this time, as a sentence for people; empty if the code says everything.
    public var sentence: String {
        guard let first = detail.first else { return "" }
        return first.uppercased() + detail.dropFirst() + (detail.hasSuffix(".") ? "" : ".")
    }
}

extension Problem {
    /// A room's refusal as an HTTP problem.
    public init(_ error: RoomError) {
        self.init(
            Self.status(of: error.code), error.code.rawValue, error.sentence,
            retryAfter: error.retryAfter ?? Self.defaultRetryAfter(error.code))
    }

    /// A token's refusal as an HTTP problem (RFC 6750 section 3).
    public init(_ error: AccessTokenError) {
        let challenge: HTTPHeaders =
            error == .missing
            ? ["WWW-Authenticate": "Bearer realm=\"martlet\""]
            : ["WWW-Authenticate": "Bearer realm=\"martlet\", error=\"invalid_token\""]
        switch error {
        case .missing:
            self.init(401, error.rawValue, "An access token is required.", headers: challenge)
        case .notPermitted:
            self.init(403, error.rawValue, "The access token does not permit this.")
        case .cannotSign:
            self.init(422, error.rawValue, "A token with these claims cannot be created.")
        default:
            self.init(401, error.rawValue, Self.sentence(error), headers: challenge)
        }
    }

    /// A refusal by the server or the router itself, as a problem document.
    public init(_ refusal: HTTPRefusal) {
        self.init(refusal.status, refusal.code, refusal.detail)
    }

    private static func sentence(_ error: AccessTokenError) -> String {
        switch error {
        case .tooLong: "The access token is too long."
        case .malformed: "The access token is not a JSON web token."
        case .algorithmNotAllowed: "The access token is not signed with HS256."
        case .unknownKey: "The access token's issuer is not a key of this server."
        case .badSignature: "The access token's signature does not match."
        case .expired: "The access token has expired."
        case .noExpiry: "The access token has no expiry time."
        case .notYetValid: "The access token is not valid yet."
        case .revoked: "The access token was revoked."
        case .badClaim: "A claim of the access token has a wrong type or is too long."
        case .missing, .notPermitted, .cannotSign: "The access token is not accepted."
        }
    }

    private static func status(of code: RoomError.Code) -> Int {
        switch code {
        case .invalidRequest, .identityRequired, .invalidDescription: 400
        case .permissionDenied, .relayNotAllowed, .roomMismatch, .participantRemoved, .grantsChanged, .banned,
            .roomLocked, .passwordRequired, .passwordWrong, .encryptionRequired, .approvalRequired, .turnedAway,
            .tokenRevoked:
            403
        case .roomNotFound, .participantNotFound, .trackNotFound, .subscriptionNotFound, .sessionNotFound,
            .connectionNotFound, .presetNotFound, .banNotFound, .guestNotFound,
            .revocationNotFound, .recordingNotFound, .playbackNotFound, .fileNotFound,
            .jobNotFound:
            404
        case .unsupportedDescription, .noCommonCodec: 406
        case .roomFull, .roomExists, .identityTaken, .glare, .unexpectedAnswer, .notRouted, .limitExceeded,
            .alreadyRecorded, .notRecordable, .notPlayable, .codecNotAllowed, .differentWorker:
            409
        case .roomClosed, .resumeTooLate: 410
        case .revisionMismatch: 412
        case .tooLarge: 413
        case .rateLimited, .tooManyAttempts: 429
        case .overloaded, .mediaUnavailable, .draining, .recordingDisabled, .playbackDisabled, .diskFull,
            .notAvailable:
            503
        }
    }

    private static func defaultRetryAfter(_ code: RoomError.Code) -> TimeSpan? {
        switch code {
        case .rateLimited, .tooManyAttempts: .seconds(1)
        case .overloaded, .mediaUnavailable, .draining: .seconds(5)
        default: nil
        }
    }
}
