import EdgeTestSupport
import Foundation
import HTTPServing
import Testing

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
