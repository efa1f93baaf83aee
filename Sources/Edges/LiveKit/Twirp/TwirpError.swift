import EdgeSupport
import HTTPServing
import Rooms

/// A refusal in Twirp's form: always JSON, whatever the request was.
struct TwirpError: Error, Sendable, Hashable {
    /// Twirp's codes, each with its status.
    enum Code: String, Sendable, Hashable {
        case invalidArgument = "invalid_argument"
        case malformed
        case notFound = "not_found"
        case badRoute = "bad_route"
        case alreadyExists = "already_exists"
        case permissionDenied = "permission_denied"
        case unauthenticated
        case resourceExhausted = "resource_exhausted"
        case failedPrecondition = "failed_precondition"
        case unimplemented
        case unavailable
        case deadlineExceeded = "deadline_exceeded"
        case unknown

        var status: Int {
            switch self {
            case .invalidArgument, .malformed: 400
            case .unauthenticated: 401
            case .permissionDenied: 403
            case .deadlineExceeded: 408
            case .notFound, .badRoute: 404
            case .alreadyExists: 409
            case .failedPrecondition: 412
            case .resourceExhausted: 429
            case .unknown: 500
            case .unimplemented: 501
            case .unavailable: 503
            }
        }
    }

    var code: Code
    var message: String
    /// Details for programs, in addition to the code.
    var meta: [String: String] = [:]

    init(_ code: Code, _ message: String, meta: [String: String] = [:]) {
        self.code = code
        self.message = message
        self.meta = meta
    }

    init(_ error: RoomError) {
        let code: Code =
            switch Problem(error).status {
            case 400, 413, 406: .invalidArgument
            case 403: .permissionDenied
            case 404, 410: .notFound
            case 409: error.code == .roomExists ? .alreadyExists : .failedPrecondition
            case 412: .failedPrecondition
            case 429: .resourceExhausted
            case 503: .unavailable
            default: .unknown
            }
        self.init(code, error.sentence.isEmpty ? error.code.rawValue : error.sentence)
    }

    var response: HTTPResponse {
        .json(
            Model(code: code.rawValue, msg: message, meta: meta.isEmpty ? nil : meta), status: code.status)
    }

    private struct Model: Encodable {
        var code: String
        var msg: String
        var meta: [String: String]?
    }
}
