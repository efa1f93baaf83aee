import Testing

@testable import EdgeSupport

@Suite("Merge patch")
struct MergePatchTests {
    @Test(
        "RFC 7396 appendix A",
        arguments: [
            (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
            (#"{"a":"b"}"#, #"{"a":null}"#, "{}"), (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
            (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
            (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
            (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#), (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#),
            (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#), (#"{"a":"foo"}"#, "null", "null"),
            (#"{"a":"foo"}"#, #""bar""#, #""bar""#), (#"{"e":null}"#, #"{"a":1}"#, #"{"a":1,"e":null}"#),
            (#"[1,2]"#, #"{"a":"b","c":null}"#, #"{"a":"b"}"#),
            ("{}", #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
        ])
    func vectors(target: String, patch: String, result: String) throws {
        let target = try JSONCoding.decode(JSONValue.self, from: Array(target.utf8))
        let patch = try JSONCoding.decode(JSONValue.self, from: Array(patch.utf8))
        #expect(JSONCoding.encodeText(target.merging(patch)) == result)
    }

    private struct Sample: Codable, Equatable {
        var count: Int?
        var name: String?

        enum CodingKeys: String, CodingKey, CaseIterable { case count, name }

        init(count: Int?, name: String?) {
            self.count = count
            self.name = name
        }

        init(from decoder: any Decoder) throws {
            try StrictKeys.check(decoder, CodingKeys.self)
            let fields = try decoder.container(keyedBy: CodingKeys.self)
            count = try fields.decodeIfPresent(Int.self, forKey: .count)
            name = try fields.decodeIfPresent(String.self, forKey: .name)
        }
    }

    @Test(
        "A typed value takes a patch; a misspelt name is found even where its value is null, and so is what is no object"
    )
    func typed() throws {
        let sample = Sample(count: 1, name: "a")
        #expect(try JSONCoding.merge(Array(#"{"name":null}"#.utf8), into: sample) == Sample(count: 1, name: nil))
        #expect(
            try JSONCoding.merge(Array(#"{"count":9007199254740993}"#.utf8), into: sample).count
                == 9_007_199_254_740_993)
        for patch in [#"{"nmae":null}"#, "[]", "3", "", #"{"count":"x"}"#] {
            #expect(throws: JSONFault.self, "\(patch)") { try JSONCoding.merge(Array(patch.utf8), into: sample) }
        }
    }
}
