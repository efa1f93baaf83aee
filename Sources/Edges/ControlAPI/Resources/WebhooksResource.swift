import AccessTokens
import EdgeSupport
import HTTPServing
import Webhooks

/// Receivers of events.
struct WebhooksResource: Resource {
    let access: APIAccess
    private let webhooks: WebhookSender

    init(access: APIAccess, webhooks: WebhookSender) {
        self.access = access
        self.webhooks = webhooks
    }

    var operations: [Operation] {
        let webhook = "/v1/webhooks/{webhook}"
        return [
            .get("/v1/webhooks", listWebhooks),
            .get(webhook, showWebhook),
            .put(webhook, putWebhook),
            .patch(webhook, patchWebhook),
            .delete(webhook, deleteWebhook),
        ]
    }

    func listWebhooks(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        let all = try await webhooking { () async throws(WebhookError) in try await webhooks.list() }
        return try ListPage(of: all, request) { $0.webhook.name }.response("webhooks") { WebhookModel($0) }
    }

    func showWebhook(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        return .json(try await webhook(named: try request.parameter("webhook")))
    }

    func putWebhook(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        let name = try request.parameter("webhook")
        let webhook = try body(WebhookSettingModel.self, of: request).webhook(named: name)
        let isNew = try await webhooking { () async throws(WebhookError) in try await webhooks.put(webhook) }
        return .json(try await self.webhook(named: name), status: isNew ? 201 : 200)
    }

    /// Applies a merge patch to the webhook, such as another URL with the same secret.
    func patchWebhook(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        let name = try request.parameter("webhook")
        let result = try await webhooking { () async throws(WebhookError) in
            try await webhooks.change(name) { current in
                Result { () throws(Problem) in try changed(current, by: request) }
            }
        }
        guard let result else { throw Self.noSuchWebhook }
        _ = try result.get()
        return .json(try await webhook(named: name))
    }

    private func changed(_ webhook: Webhook, by request: HTTPRequest) throws(Problem) -> Webhook {
        let setting = try patched(WebhookSettingModel(webhook), by: request)
        do throws(Problem) {
            return try setting.webhook(named: webhook.name)
        } catch {
            // The patch may be valid by itself, but its result is not.
            throw Problem(409, "conflict", error.detail)
        }
    }

    func deleteWebhook(_ request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        try authorizeServer(request)
        let name = try request.parameter("webhook")
        let existed = try await webhooking { () async throws(WebhookError) in try await webhooks.delete(name) }
        guard existed else { throw Self.noSuchWebhook }
        return HTTPResponse(status: 204)
    }

    private func webhook(named name: String) async throws(Problem) -> WebhookModel {
        let status = try await webhooking { () async throws(WebhookError) in try await webhooks.status(of: name) }
        guard let status else { throw Self.noSuchWebhook }
        return WebhookModel(status)
    }

    private static let noSuchWebhook = Problem(404, "webhook_not_found", "There is no such webhook.")

    private func webhooking<Value: Sendable>(
        _ work: () async throws(WebhookError) -> Value
    ) async throws(Problem) -> Value {
        do throws(WebhookError) {
            return try await work()
        } catch {
            switch error {
            case .invalid(let sentence):
                throw Problem(400, "invalid_request", "\(sentence.prefix(1).uppercased())\(sentence.dropFirst()).")
            case .privateAddress:
                throw Problem(
                    403, "private_address",
                    "The receiver's address is private. Allow such receivers with webhooks.allow_private, if they are yours."
                )
            case .keyNotFound:
                throw Problem(404, "key_not_found", "There is no API key of the name that the webhook gives.")
            case .tooMany: throw Problem(409, "limit_exceeded", "The server has as many webhooks as it may have.")
            case .storage(let words): throw storageFailed(words)
            }
        }
    }
}
