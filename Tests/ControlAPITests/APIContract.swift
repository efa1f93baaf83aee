import EdgeSupport
import Foundation
import HTTPServing
import Testing

/// `openapi.json` as what every answer is held to: its status, its media type, and its members.
///
/// Nobody changes what it holds.
struct APIContract: @unchecked Sendable {
    static let shared = APIContract()

    let document: [String: Any]
    private let checker: SchemaChecker
    /// By path: its parts, then what stands at it.
    private let paths: [(parts: [String], item: [String: Any])]

    private init() {
        let file = URL(filePath: #filePath).appending(path: "../../../Sources/Edges/ControlAPI/openapi.json")
        guard let text = try? Data(contentsOf: file.standardizedFileURL),
            let document = try? JSONSerialization.jsonObject(with: text) as? [String: Any],
            let paths = document["paths"] as? [String: [String: Any]]
        else { preconditionFailure("\(file.standardizedFileURL.path) is no JSON document with paths") }
        self.document = document
        checker = SchemaChecker(document: document)
        self.paths = paths.map { ($0.key.split(separator: "/").map(String.init), $0.value) }
    }

    /// The paths whose GET has a parameter of this name in its query.
    func lists(with parameter: String) -> [String] {
        paths.compactMap { parts, item in
            let operation = item["get"] as? [String: Any]
            let names = (operation?["parameters"] as? [[String: Any]] ?? []).compactMap { $0["name"] as? String }
            return names.contains(parameter) ? "/" + parts.joined(separator: "/") : nil
        }.sorted()
    }

    /// What is wrong with `value` as one of the document's schemas.
    func faults(_ value: Any, as schema: String) -> [String] {
        checker.faults(value, ["$ref": "#/components/schemas/\(schema)"])
    }

    /// What is wrong with `response` as the answer to `request`; empty when nothing is.
    func faults(_ response: HTTPResponse, to request: HTTPRequest) -> [String] {
        let type = response.headers["Content-Type"]
        if type == Problem.contentType { return faults(json(response), as: "Problem") }
        guard let operation = operation(of: request) else {
            return request.path == "/openapi.json" ? [] : ["there is no such operation"]
        }
        let answers = operation["responses"] as? [String: [String: Any]] ?? [:]
        guard let answer = answers[String(response.status)] else { return ["\(response.status) is not described"] }
        let hasBody = response.stream != nil || !response.body.isEmpty
        guard let content = answer["content"] as? [String: [String: Any]] else {
            return hasBody ? ["a body of \(type ?? "no type") that is not described"] : []
        }
        guard let type, let media = content[type] else { return ["\(type ?? "no type") is not among \(content.keys)"] }
        guard type == JSONCoding.contentType, request.method != .head else { return [] }
        return checker.faults(json(response), media["schema"] as? [String: Any] ?? [:])
    }

    private func operation(of request: HTTPRequest) -> [String: Any]? {
        let method = request.method == .head ? "get" : request.method.rawValue.lowercased()
        let fitting = paths.filter { parts, _ in
            parts.count == request.segments.count
                && zip(parts, request.segments).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
        }
        // "/v1/node/drain" before what it would be as a parameter's value.
        let nearest = fitting.min { one, other in
            one.parts.count { $0.hasPrefix("{") } < other.parts.count { $0.hasPrefix("{") }
        }
        return nearest?.item[method] as? [String: Any]
    }

    private func json(_ response: HTTPResponse) -> Any {
        (try? JSONSerialization.jsonObject(with: Data(response.body), options: .fragmentsAllowed)) ?? NSNull()
    }
}

extension TestAPI {
    /// The answer to `request`, which records an issue where the document describes it otherwise.
    func answer(
        _ request: HTTPRequest, sourceLocation: SourceLocation = #_sourceLocation
    ) async -> HTTPResponse {
        let response = await router.handle(request)
        let faults = APIContract.shared.faults(response, to: request)
        if !faults.isEmpty {
            let what = "\(request.method.rawValue) \(request.path) \(response.status)"
            Issue.record(
                "\(what) is not as openapi.json says: \(faults.joined(separator: ", "))", sourceLocation: sourceLocation
            )
        }
        return response
    }
}

@Suite("The document that answers are held to")
struct APIContractTests {
    private func faults(_ target: String, _ response: HTTPResponse) throws -> [String] {
        APIContract.shared.faults(response, to: try #require(HTTPRequest(method: .get, target: target)))
    }

    private func json(_ text: String, status: Int = 200, type: String = JSONCoding.contentType) -> HTTPResponse {
        HTTPResponse(status: status, headers: ["Content-Type": type], body: Array(text.utf8))
    }

    @Test(
        "An answer with a member, a status, a type or a body that is not described, or without one that must be there, is a fault"
    )
    func faults() throws {
        let good = #"{"revocations":[]}"#
        #expect(try faults("/v1/revocations", json(good)).isEmpty)
        #expect(try faults("/v1/revocations", json(#"{"revocations":[],"more":1}"#)) == ["$.more is unknown"])
        #expect(try faults("/v1/revocations", json("{}")) == ["$.revocations is missing"])
        #expect(try faults("/v1/revocations", json(good, status: 202)) == ["202 is not described"])
        #expect(try faults("/v1/revocations", json(good, type: "text/plain")).count == 1)
        #expect(try faults("/v1/nothing", json("{}")) == ["there is no such operation"])
        #expect(try faults("/v1/revocations", json("{}", status: 404, type: Problem.contentType)).count == 4)
        let request = try #require(HTTPRequest(method: .delete, target: "/v1/presets/p"))
        #expect(APIContract.shared.faults(json("{}", status: 204), to: request).count == 1)
        #expect(APIContract.shared.faults(HTTPResponse(status: 204), to: request).isEmpty)
    }
}
