import AccessTokens
import EdgeSupport
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
        TestAPI.edge(TestRooms()).register(on: &router)
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
            TestAPI.edge(TestRooms()).operations.map { "\($0.method.rawValue.lowercased()) \($0.pattern)" })
        #expect(described == served)
    }

    @Test(
        "The types of events that readers may ask for are those that there are, and a webhook's those that are posted, in each format"
    )
    func eventTypes() async throws {
        let schemas = try #require(try await document()["components"] as? [String: [String: [String: Any]]])["schemas"]
        let properties = try #require(schemas?["WebhookSetting"]?["properties"] as? [String: [String: Any]])
        func words(_ schema: String) -> Set<String> { Set(schemas?[schema]?["enum"] as? [String] ?? []) }
        #expect(
            (properties["events"]?["items"] as? [String: String]) == ["$ref": "#/components/schemas/WebhookEventType"])
        let formats = try #require(properties["format"]?["enum"] as? [String])
        #expect(formats == Webhook.Format.allCases.map(\.rawValue))
        #expect(words("EventType") == EventModel.types)
        #expect(words("EventType") == WebhookSettingModel.types(in: .martlet))
        #expect(words("LiveKitEventType") == WebhookSettingModel.types(in: .liveKit))
        #expect(
            schemas?["WebhookEventType"]?["anyOf"] as? [[String: String]]
                == ["EventType", "LiveKitEventType"].map { ["$ref": "#/components/schemas/\($0)"] })
    }

    @Test(
        "The codes of problems are those of rooms, of access tokens, and those that the API and its HTTP server write")
    func problemCodes() throws {
        let schemas = try #require(APIContract.shared.document["components"] as? [String: [String: [String: Any]]])
        let described = try #require(schemas["schemas"]?["ProblemCode"]?["enum"] as? [String])
        var codes = Set(RoomError.Code.allCases.map(\.rawValue) + AccessTokenError.allCases.map(\.rawValue))
        let sources = URL(filePath: #filePath).appending(path: "../../../Sources").standardizedFileURL
        for folder in ["Edges/ControlAPI", "Edges/EdgeSupport", "Runtime/HTTPServing"] {
            let files = FileManager.default.enumerator(
                at: sources.appending(path: folder), includingPropertiesForKeys: nil)
            for case let file as URL in try #require(files) where file.pathExtension == "swift" {
                // Tokens of the development server are not of this API.
                guard file.lastPathComponent != "DevelopmentTokens.swift" else { continue }
                let written = try String(contentsOf: file, encoding: .utf8)
                    .matches(of: /(?:\b[1-5][0-9]{2},\s*|code: |refusal\(\s*)"([a-z]+(?:_[a-z]+)*)"/)
                codes.formUnion(written.map { String($0.1) })
            }
        }
        #expect(described == codes.sorted())
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

    @Test("Each field of a policy is described with its default, which is the one in force where nobody says anything")
    func policyDefaults() async throws {
        let schemas = try #require(try await document()["components"] as? [String: [String: [String: Any]]])["schemas"]
        let properties = try #require(schemas?["Policy"]?["properties"] as? [String: [String: Any]])
        #expect(Set(properties.keys) == Set(PolicyModel.memberNames))
        let text = Data(JSONCoding.encode(PolicyModel(RoomPolicy())))
        let inForce = try #require(try JSONSerialization.jsonObject(with: text) as? NSDictionary)
        let described = properties.compactMapValues { $0["default"] }
        #expect(NSDictionary(dictionary: described) == inForce)
        for (name, property) in properties {
            let words = try #require(property["description"] as? String, "\(name)")
            #expect((property["default"] == nil) == words.contains("Absent: "), "\(name): what holds without it?")
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

    @Test("Every text, number and list in a body that a call takes is bounded")
    func bounds() async throws {
        let document = try await document()
        let schemas = try #require(document["components"] as? [String: [String: [String: Any]]])["schemas"] ?? [:]
        var unbounded: Set<String> = [], seen = 0
        func walk(_ schema: [String: Any], _ place: String) {
            if let reference = schema["$ref"] as? String {
                let name = String(reference.split(separator: "/").last ?? "")
                return walk(schemas[name] ?? [:], name)
            }
            let types = (schema["type"] as? [String]) ?? (schema["type"] as? String).map { [$0] } ?? []
            let isChosen = schema["enum"] != nil || schema["const"] != nil
            seen += 1
            for type in types where !isChosen {
                switch type {
                case "string" where schema["maxLength"] == nil, "array" where schema["maxItems"] == nil,
                    "integer" where schema["maximum"] == nil || schema["minimum"] == nil:
                    unbounded.insert(place)
                default: break
                }
            }
            for (name, member) in schema["properties"] as? [String: [String: Any]] ?? [:] {
                walk(member, "\(place).\(name)")
            }
            if let items = schema["items"] as? [String: Any] { walk(items, "\(place)[]") }
            for choice in schema["anyOf"] as? [[String: Any]] ?? [] { walk(choice, place) }
        }
        for (path, item) in try #require(document["paths"] as? [String: [String: Any]]) {
            for (method, operation) in item {
                let body = (operation as? [String: Any])?["requestBody"] as? [String: Any]
                for media in (body?["content"] as? [String: [String: Any]] ?? [:]).values {
                    walk(try #require(media["schema"] as? [String: Any]), "\(method) \(path)")
                }
            }
        }
        #expect(seen > 150 && unbounded.isEmpty, "\(unbounded.sorted())")
    }

    @Test(
        "A body with a text or a list beyond its bound is refused with the place",
        arguments: [
            ("POST", "/v1/rooms/R/messages", #"{"text":"x","to":["L"]}"#, "/to"),
            ("POST", "/v1/rooms/R/playbacks", #"{"file":"L"}"#, "/file"),
            ("POST", "/v1/rooms/R/playbacks", #"{"recording":"L"}"#, "/recording"),
            ("POST", "/v1/rooms/R/playbacks", #"{"file":"a.mp4","identity":"L"}"#, "/identity"),
            ("POST", "/v1/rooms/R/playbacks", #"{"file":"a.mp4","name":"L"}"#, "/name"),
            ("POST", "/v1/rooms/R/recordings", #"{"participant":"L"}"#, "/participant"),
            ("POST", "/v1/rooms/R/recordings", #"{"track":"L"}"#, "/track"),
            ("PUT", "/v1/webhooks/w", #"{"url":"https://e.com","key":"L"}"#, "/key"),
        ])
    func tooLong(method: String, target: String, body: String, pointer: String) async throws {
        let api = TestAPI()
        #expect(try await api.ask(.post, "/v1/rooms", #"{"name":"R"}"#).status == 201)
        let long = String(repeating: "a", count: 1_025)
        let answer = try await api.ask(
            HTTPMethod(rawValue: method), target, body.replacingOccurrences(of: "\"L\"", with: "\"\(long)\""))
        #expect(answer.status == 400 && answer.members["pointer"] as? String == pointer)
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
