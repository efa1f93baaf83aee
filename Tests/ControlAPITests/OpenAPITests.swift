import EdgeTestSupport
import Foundation
import HTTPServing
import Rooms
import Testing
import Webhooks

@testable import ControlAPI

@Suite("OpenAPI")
struct OpenAPITests {
    private func document() async throws -> [String: Any] {
        var router = Router()
        House.edge(TestRooms()).register(on: &router)
        let response = await router.handle(try request(.get, "/openapi.json"))
        #expect(response.status == 200)
        return try #require(try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
    }

    @Test("I9: the document has exactly the operations that are served")
    func operations() async throws {
        let paths = try #require(try await document()["paths"] as? [String: [String: Any]])
        let methods = ["get", "post", "put", "patch", "delete"]
        let described = Set(paths.flatMap { path, item in methods.filter { item[$0] != nil }.map { "\($0) \(path)" } })
        let served = Set(
            House.edge(TestRooms()).operations.map { "\($0.method.rawValue.lowercased()) \($0.pattern)" })
        #expect(described == served)
    }

    @Test("The types of events that a webhook may want are those that are posted, in each format")
    func webhookEvents() async throws {
        let schemas = try #require(try await document()["components"] as? [String: [String: [String: Any]]])["schemas"]
        let properties = try #require(schemas?["WebhookSetting"]?["properties"] as? [String: [String: Any]])
        let described = try #require((properties["events"]?["items"] as? [String: Any])?["enum"] as? [String])
        let formats = try #require(properties["format"]?["enum"] as? [String])
        #expect(formats == Webhook.Format.allCases.map(\.rawValue))
        #expect(Set(described) == Webhook.Format.allCases.reduce([]) { $0.union(WebhookSettingModel.types(in: $1)) })
    }

    @Test("4.2: a name fits the document's schema exactly where the rooms take it")
    func names() async throws {
        let schemas = try #require(try await document()["components"] as? [String: [String: [String: Any]]])["schemas"]
        let room = try #require(schemas?["RoomName"])
        let creation = try #require(schemas?["RoomCreation"]?["properties"] as? [String: [String: Any]])
        let metadata = try #require(creation["metadata"])
        #expect(room["maxLength"] as? Int == TextRule.identifier.maximumLength)
        #expect(metadata["maxLength"] as? Int == TextRule.metadata.maximumLength)
        #expect((room["not"] as? [String: [String]]) == ["enum": [".", ".."]])
        for (schema, rule) in [(room, TextRule.identifier), (metadata, .metadata)] {
            let pattern = try NSRegularExpression(pattern: try #require(schema["pattern"] as? String))
            func fits(_ text: String) -> Bool {
                // Unlike ECMAScript's, this "$" also stands before a last line end.
                let whole = NSRange(text.startIndex..., in: text)
                return pattern.firstMatch(in: text, range: whole)?.range == whole
            }
            var differing: [UInt32] = []
            // The planes above hold nothing that is refused; some code points of them stand for all.
            for code in Array(0...0xffff as ClosedRange<UInt32>) + [0x1_0000, 0x1_f600, 0xe_0001, 0xf_0000, 0x10_ffff] {
                guard let scalar = Unicode.Scalar(code) else { continue }
                for text in [String(scalar), "a\(scalar)b"] where fits(text) != (rule.fault(in: text) == nil) {
                    // Dot segments are refused by \"not\".
                    if text != "." { differing.append(code) }
                }
            }
            #expect(differing.isEmpty, "\(differing.map { String($0, radix: 16) })")
        }
    }

    @Test("Every body that a call takes has an example, which its schema permits")
    func examples() async throws {
        let document = try await document()
        let checker = SchemaChecker(document: document)
        var count = 0
        for (path, item) in try #require(document["paths"] as? [String: [String: Any]]) {
            for (method, operation) in item {
                guard let operation = operation as? [String: Any],
                    let body = operation["requestBody"] as? [String: Any],
                    let content = body["content"] as? [String: [String: Any]]
                else { continue }
                for media in content.values {
                    let example = try #require(media["example"], "\(method) \(path)")
                    let faults = checker.faults(example, try #require(media["schema"] as? [String: Any]))
                    #expect(faults.isEmpty, "\(method) \(path): \(faults)")
                    count += 1
                }
            }
        }
        #expect(count > 15)
    }

    @Test("Every reference leads somewhere, every operation has an id of its own")
    func references() async throws {
        let document = try await document()
        let components = try #require(document["components"] as? [String: [String: Any]])
        var ids: [String] = []
        func walk(_ value: Any) {
            if let list = value as? [Any] { list.forEach(walk) }
            guard let object = value as? [String: Any] else { return }
            if let reference = object["$ref"] as? String {
                let parts = reference.split(separator: "/").map(String.init)
                #expect(parts.count == 4 && components[parts[2]]?[parts[3]] != nil, "\(reference)")
            }
            if let id = object["operationId"] as? String { ids.append(id) }
            object.values.forEach(walk)
        }
        walk(document)
        #expect(Set(ids).count == ids.count)
        #expect(document["openapi"] as? String == "3.1.0")
    }
}
