import AccessTokens
import Testing

@testable import Webhooks

@Suite("Signed requests of webhooks")
struct WebhookRequestTests {
    private let event = QueuedEvent(id: 7, eventID: "e-9", format: .martlet, body: Array(#"{"a":1}"#.utf8))

    // Both values by Python's hmac and hashlib.
    @Test("The signature is HMAC-SHA256 over the time, a point and the body, as a foreign implementation computes it")
    func signature() throws {
        let webhook = Webhook(name: "w", url: "https://e.com", signer: .secret("sixteen bytes or more"))
        let request = try #require(WebhookRequest(event, to: webhook, keys: [], at: 1_700_000_000))
        #expect(
            request.headers.last
                == "Martlet-Signature: t=1700000000,v1=ca01cc9110dc59dc1c3125223218e0a09883c98c16a0940b4d5acf5e6f1ae1c4"
        )
        #expect(request.headers.contains("Martlet-Event-Id: e-9") && !request.headers.contains { $0.hasPrefix("Auth") })
    }

    @Test("With an API key a token vouches for the body; without that key there is no request")
    func token() throws {
        let webhook = Webhook(name: "w", url: "https://e.com", signer: .key("app"))
        let keys = [APIKey(name: "app", secret: "sixteen bytes or more")]
        let request = try #require(WebhookRequest(event, to: webhook, keys: keys, at: 1_700_000_000))
        #expect(
            request.headers.last?.hasSuffix("v1=ca01cc9110dc59dc1c3125223218e0a09883c98c16a0940b4d5acf5e6f1ae1c4")
                == true)
        let token = try #require(request.headers.first { $0.hasPrefix("Authorization: ") }?.dropFirst(15))
        #expect(try TokenVerifier(keys: keys).verify(String(token), at: 1_700_000_100).apiKey == "app")
        #expect(throws: AccessTokenError.expired) {
            try TokenVerifier(keys: keys).verify(String(token), at: 1_700_000_361)
        }
        #expect(WebhookRequest(event, to: webhook, keys: [], at: 0) == nil)
    }
}
