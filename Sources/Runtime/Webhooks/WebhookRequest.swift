import AccessTokens
import Cryptography
import HTTPClient
import Primitives

import struct Foundation.Data

/// The request that posts one event.
struct WebhookRequest: Sendable, Hashable {
    var url: String
    /// Complete lines, such as `Content-Type: application/json`.
    var headers: [String]
    var body: [UInt8]

    /// How long the token of a request is valid.
    private static let tokenSeconds: Int64 = 300

    /// The request for `event`, signed at `second` (since 1970); nil if the webhook's API key is no longer configured.
    init?(_ event: QueuedEvent, to webhook: Webhook, keys: [APIKey], at second: Int64) {
        url = webhook.url
        body = event.body
        let type =
            switch event.format {
            case .martlet: "application/json"
            case .liveKit: "application/webhook+json"
            }
        headers = ["Content-Type: \(type)", "User-Agent: martlet", "Martlet-Event-Id: \(event.eventID)"]
        let secret: String
        switch webhook.signer {
        case .secret(let text): secret = text
        case .key(let name):
            guard let key = keys.first(where: { $0.name == name }),
                let token = TokenVerifier(keys: [key]).mintBodyToken(
                    key: name, sha256: Data(Digest.sha256(body)).base64EncodedString(), issuedAt: second,
                    expiresAt: second + Self.tokenSeconds)
            else { return nil }
            secret = key.secret
            headers.append("Authorization: \(token)")
        }
        let signed = Array("\(second).".utf8) + body
        let signature = Digest.hmacSHA256(key: Array(secret.utf8), signed)
        headers.append("Martlet-Signature: t=\(second),v1=\(signature.hexadecimal)")
    }
}

extension WebhookRequest {
    /// Sends it over the network.
    func post(isPublicOnly: Bool) async -> WebhookOutcome {
        var call = HTTPCall("POST", url)
        call.headers = headers
        call.body = body
        call.isPublicOnly = isPublicOnly
        switch await call.performInBackground(keepsBody: false) {
        case .answered(let status, _): return .answered(status: status)
        case .failed(let words), .nobodyListens(let words): return .failed(words)
        case .addressRefused:
            return .failed(
                "the receiver's address is private: allow such receivers with webhooks.allow_private, if they are yours"
            )
        }
    }
}

/// The result of a request.
enum WebhookOutcome: Sendable, Hashable {
    case answered(status: Int)
    /// A description: the name was not found, nothing listened, it took too long.
    case failed(String)

    /// The error; nil: none.
    var error: String? {
        switch self {
        case .answered(200..<300): nil
        case .answered(let status): "the receiver answered \(status)"
        case .failed(let words): words
        }
    }
}
