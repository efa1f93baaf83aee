import EdgeSupport
import Webhooks

/// A webhook as a request body sets it. The path names it.
struct WebhookSettingModel: Codable, Sendable {
    /// nil: a patch that does not change it.
    var url: String?
    /// `martlet` or `livekit`; nil: the former.
    var format: String?
    /// In place of `key`.
    var secret: String?
    /// Instead of `secret`: the name of an API key.
    var key: String?
    var events: [String]?
    var rooms: [String]?

    private enum CodingKeys: String, CodingKey, CaseIterable { case url, format, secret, key, events, rooms }

    init(from decoder: any Decoder) throws {
        try StrictKeys.check(decoder, CodingKeys.self)
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        url = try fields.decodeIfPresent(String.self, forKey: .url)
        format = try fields.decodeIfPresent(String.self, forKey: .format)
        secret = try fields.decodeIfPresent(String.self, forKey: .secret)
        key = try fields.text(.key, upTo: Bounds.name)
        events = try fields.texts(.events, upTo: Bounds.words)
        rooms = try fields.decodeIfPresent([String].self, forKey: .rooms)
    }

    /// As `webhook` was set.
    init(_ webhook: Webhook) {
        url = webhook.url
        format = webhook.format.rawValue
        switch webhook.signer {
        case .secret(let secret): self.secret = secret
        case .key(let key): self.key = key
        }
        events = webhook.events?.sorted()
        rooms = webhook.rooms?.sorted()
    }

    func webhook(named name: String) throws(Problem) -> Webhook {
        guard let url else { throw Problem(JSONFault(["url"], .missing)) }
        let signer: Webhook.Signer
        switch (secret, key) {
        case (let secret?, nil): signer = .secret(secret)
        case (nil, let key?): signer = .key(key)
        default: throw Problem(400, "invalid_request", "A webhook needs either a secret or the name of an API key.")
        }
        guard let format = Webhook.Format(rawValue: format ?? Webhook.Format.martlet.rawValue) else {
            throw Problem(400, "invalid_request", "The format of a webhook is one of: \(Webhook.Format.allWords).")
        }
        let types = Self.types(in: format)
        if let unknown = events?.first(where: { !types.contains($0) }) {
            throw Problem(
                400, "invalid_request",
                "There is no event of the type \(JSONCoding.encodeText(unknown)) in the format \(format.rawValue).")
        }
        return Webhook(
            name: name, url: url, format: format, signer: signer, events: events.map { Set($0) },
            rooms: rooms.map { Set($0) })
    }
}

extension WebhookSettingModel {
    /// The words that `events` may have.
    static func types(in format: Webhook.Format) -> Set<String> {
        switch format {
        case .martlet: EventModel.types
        case .liveKit: Set(LiveKitEventType.allCases.map(\.rawValue))
        }
    }
}

/// A webhook as JSON shows it: never its secret.
struct WebhookModel: Encodable, Sendable {
    var name: String
    var url: String
    var format: String
    var key: String?
    var events: [String]?
    var rooms: [String]?
    /// `active`, `failing` or `parked`.
    var state: String
    var queued: Int
    var delivered: UInt64
    var lost: UInt64
    var lastError: String?

    init(_ status: WebhookStatus) {
        name = status.webhook.name
        url = status.webhook.url
        format = status.webhook.format.rawValue
        if case .key(let name) = status.webhook.signer { key = name }
        events = status.webhook.events?.sorted()
        rooms = status.webhook.rooms?.sorted()
        state = status.state.rawValue
        queued = status.queued
        delivered = status.delivered
        lost = status.lost
        lastError = status.lastError
    }
}
