import AccessTokens
import EdgeSupport
import HTTPServing
import Recorder

/// One file of a recording, and the claims of the token that shared it. Signed, it is a link that gives access to this file and nothing else, for a limited
/// time and without a token.
struct RecordingLink {
    let recording: String
    let file: String
    private let claims: AccessClaims
    /// Seconds since 1970, when the token by which the link is made expires: it cannot be revoked later than that.
    private let latestExpiry: Int64

    /// The API key that made it.
    var issuer: String { claims.apiKey }

    private static let purpose = "martlet: link to a recorded file"

    static let noSuchFile = Problem(404, "file_not_found", "The recording has no file of this name.")
    static let wrong = refusal("link_invalid", "The link is not one that this server made for this recording.")

    /// A link replaces a token, so an invalid one is refused with 401, too.
    private static func refusal(_ code: String, _ detail: String) -> Problem {
        Problem(401, code, detail, headers: ["WWW-Authenticate": "Bearer realm=\"martlet\""])
    }

    /// A link to the file `name` of `summary`; nil: to its only one. It is valid as long as the token with `claims` is not revoked, and its API key is one of
    /// the server's.
    init(to name: String?, of summary: RecordingSummary, by claims: AccessClaims) throws(Problem) {
        let names = summary.readableFiles.map(\.name)
        guard !names.isEmpty else { throw Self.noSuchFile }
        // Without a name, files that jobs have made do not count.
        let own = summary.storedFiles.map(\.name)
        guard let file = name ?? (own.count == 1 ? own[0] : nil) else {
            throw Problem(400, "invalid_request", "The recording has several files: the request must name one.")
        }
        guard names.contains(file) else { throw Self.noSuchFile }
        recording = summary.sid
        self.file = file
        // Only what identifies the file and what can revoke the link: URLs end up in the logs of proxies.
        self.claims = AccessClaims(
            apiKey: claims.apiKey, identity: claims.identity, expiresAt: 0,
            issuedAt: claims.issuedAt ?? claims.notBefore, tokenID: claims.tokenID)
        latestExpiry = claims.expiresAt
    }

    /// The link whose signed part is `text`.
    init(_ text: String, _ gate: TokenGate) throws(Problem) {
        do throws(AccessTokenError) {
            claims = try gate.claims(ofSigned: text, for: Self.purpose)
        } catch .expired {
            throw Self.refusal("link_expired", "The link has expired. Request another one.")
        } catch {
            throw Self.wrong
        }
        guard let recording = claims.attributes["recording"], let file = claims.attributes["file"] else {
            throw Self.wrong
        }
        self.recording = recording
        self.file = file
        latestExpiry = claims.expiresAt
    }

    /// The signed link as the API returns it. It is valid for `seconds`, but no longer than the token by which it is made.
    func signed(by gate: TokenGate, seconds: Int64) throws(Problem) -> RecordingLinkModel {
        var claims = claims
        claims.attributes = ["recording": recording, "file": file]
        do throws(AccessTokenError) {
            let (text, expiresAt) = try gate.sign(
                claims, for: Self.purpose, seconds: seconds, until: latestExpiry)
            return RecordingLinkModel(
                url: "/v1/recordings/\(recording)/file?link=\(text)", file: file, expiresAt: expiresAt * 1_000)
        } catch {
            throw Problem(error)
        }
    }
}

/// The file that a link is requested for, and for how long.
struct RecordingLinkRequest: Decodable {
    let file: String?
    let seconds: Int64?

    /// An hour: most recordings are watched within one, and a player can request another link.
    static let standardSeconds: Int64 = 3_600
    /// A day: a link that is valid longer would be a copy that nobody manages.
    static let longestSeconds: Int64 = 86_400

    private enum CodingKeys: String, CodingKey, CaseIterable { case file, seconds }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        file = try fields.text(.file, upTo: Bounds.path)
        seconds = try fields.decodeIfPresent(Int64.self, forKey: .seconds)
        guard let seconds, !(1...Self.longestSeconds).contains(seconds) else { return }
        throw JSONFault(fields.codingPath, CodingKeys.seconds, .unexpected(wanted: "1 to \(Self.longestSeconds)"))
    }
}

/// A link as JSON shows it.
struct RecordingLinkModel: Encodable {
    /// Relative to the address of the API.
    var url: String
    var file: String
    /// Milliseconds since 1970.
    var expiresAt: Int64
}
