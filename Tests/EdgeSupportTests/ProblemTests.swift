import AccessTokens
import EdgeTestSupport
import Foundation
import HTTPServing
import Primitives
import Rooms
import Testing

@testable import EdgeSupport

@Suite("Problem details")
struct ProblemTests {
    private func members(_ response: HTTPResponse) throws -> [String: String] {
        let object = try #require(try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
        return object.mapValues { "\($0)" }
    }

    @Test("An error is a document with type, title, status, code and detail (RFC 9457)")
    func document() throws {
        let response = Problem(RoomError(.roomFull, "The room has 4 of 4 participants.")).response
        #expect(response.status == 409)
        #expect(response.headers["Content-Type"] == "application/problem+json")
        #expect(
            try members(response) == [
                "type": "about:blank", "title": "Conflict", "status": "409", "code": "room_full",
                "detail": "The room has 4 of 4 participants.",
            ])
    }

    @Test("Every room error has a client or server error status with a title", arguments: RoomError.Code.allCases)
    func roomErrors(code: RoomError.Code) {
        let problem = Problem(RoomError(code))
        #expect((400..<600).contains(problem.status))
        #expect(!HTTPStatus.title(of: problem.status).isEmpty)
        #expect(problem.code == code.rawValue)
    }

    @Test("Every token error is 401 with a challenge, 403 or 422", arguments: AccessTokenError.allCases)
    func tokenErrors(error: AccessTokenError) {
        let problem = Problem(error)
        #expect([401, 403, 422].contains(problem.status))
        #expect((problem.headers["WWW-Authenticate"] != nil) == (problem.status == 401))
        #expect(!problem.detail.isEmpty)
    }

    @Test("Retry-After is whole seconds, rounded up, at least one")
    func retryAfter() {
        #expect(
            Problem(RoomError(.overloaded, retryAfter: .milliseconds(1_200))).response.headers["Retry-After"] == "2")
        #expect(Problem(RoomError(.rateLimited, retryAfter: .milliseconds(10))).response.headers["Retry-After"] == "1")
        for code in [RoomError.Code.rateLimited, .tooManyAttempts] {
            let response = Problem(RoomError(code)).response
            #expect(response.status == 429 && response.headers["Retry-After"] == "1")
        }
        #expect(Problem(RoomError(.draining)).response.headers["Retry-After"] == "5")
        #expect(Problem(RoomError(.roomFull)).response.headers["Retry-After"] == nil)
    }

    @Test("4.7: the document contains the place as a JSON Pointer, the expected value, and the value found")
    func place() throws {
        var fault = JSONFault(["a/b~c", "0"], .unexpected(wanted: "1 to 9"), found: "0")
        var document = try members(Problem(fault).response)
        #expect(document["pointer"] == "/a~1b~0c/0" && document["expected"] == "1 to 9" && document["found"] == "0")
        #expect(document["code"] == "malformed_json" && document["suggestion"] == nil)
        fault = JSONFault(["maxParticipants"], .unknown(meant: ["policy", "maxParticipants"]))
        document = try members(Problem(fault).response)
        #expect(document["pointer"] == "/maxParticipants" && document["suggestion"] == "policy.maxParticipants")
        #expect(
            document["detail"] == "The field maxParticipants is unknown; did you mean policy.maxParticipants?")
        #expect(try members(Problem(400, "x").response)["pointer"] == nil)
    }

    @Test(
        "4.7: the suggested word is the one with the fewest edits; without a near one there is none",
        arguments: [
            ("maxParticpants", "maxParticipants"), ("nmae", "name"), ("Name", "name"), ("metdata", "metadata"),
            ("maxparticipants", "maxParticipants"), ("surprise", nil), ("x", nil), ("", nil),
            (String(repeating: "n", count: 10_000), nil),
        ] as [(String, String?)])
    func nearest(word: String, expected: String?) {
        #expect(NearestWord.of(["name", "metadata", "maxParticipants", "maxPublishers"], to: word) == expected)
    }

    @Test("A JSON fault contains the place")
    func faults() {
        struct Body: Decodable { var a: [Inner] }
        struct Inner: Decodable { var b: Int }
        func fault(_ text: String) -> String? {
            let result = Result { () throws(JSONFault) in try JSONCoding.decode(Body.self, from: Array(text.utf8)) }
            guard case .failure(let fault) = result else { return nil }
            return fault.sentence
        }
        #expect(fault("{\"a\":[{\"b\":1}]}") == nil)
        #expect(fault("{\"a\":[{\"b\":\"x\"}]}") == "The field a.0.b is \"x\"; it must be a whole number.")
        #expect(fault("{\"a\":[{\"b\":1},{\"b\":1.5}]}") == "The body has a number that is out of range.")
        #expect(fault("{\"a\":[{\"b\":1e99}]}") == "The body has a number that is out of range.")
        #expect(fault("{\"a\":{\"b\":1}}") == "The field a is an object; it must be an array.")
        #expect(fault("{\"a\":[[]]}") == "The field a.0 is an array; it must be an object.")
        let long = String(repeating: "x", count: 41)
        #expect(
            fault("{\"a\":[{\"b\":\"\(long)\"}]}")
                == "The field a.0.b is a string of 41 characters; it must be a whole number.")
        #expect(fault("{}") == "The field a is missing.")
        #expect(fault("{\"a\":null}") == "The field a is missing.")
        #expect(fault("nope") == "The body is not JSON.")
        #expect(fault("[1]") == "The body is an array; it must be an object.")
    }
}
