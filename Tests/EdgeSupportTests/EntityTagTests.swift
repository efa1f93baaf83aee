import Testing

@testable import EdgeSupport

@Suite("If-Match")
struct EntityTagTests {
    @Test(
        "Strong comparison over lists; * in both spellings matches anything; weak tags never match",
        arguments: [
            (["\"abc\""], true), (["\"abd\""], false), (["\"x\", \"abc\""], true), (["\"x\"", "\"abc\""], true),
            (["W/\"abc\""], false), (["*"], true), (["\"*\""], true), (["abc"], false),
        ] as [([String], Bool)])
    func comparison(fields: [String], matches: Bool) {
        #expect(EntityTag.Condition(fields)?.matches("abc") == matches)
    }

    @Test("No field, or an empty one, is no condition")
    func absent() {
        #expect(EntityTag.Condition([]) == nil)
        #expect(EntityTag.Condition([""]) == nil)
        #expect(EntityTag.Condition([" , "]) == nil || EntityTag.Condition([" , "])?.matches("abc") == false)
    }
}
