import Testing

@testable import martlet

@Suite("Spelling")
struct SpellingTests {
    @Test(
        "The edit distance of two words",
        arguments: [
            ("", "", 0), ("port", "port", 0), ("prot", "port", 1), ("por", "port", 1), ("porrt", "port", 1),
            ("pert", "port", 1),
            ("", "port", 4), ("kitten", "sitting", 3),
        ])
    func mistakes(a: String, b: String, count: Int) {
        #expect(Spelling.mistakes(Array(a), Array(b)) == count)
        #expect(Spelling.mistakes(Array(b), Array(a)) == count)
    }

    @Test(
        "The nearest name is found, and none where nothing is near",
        arguments: [
            ("http.prot", "http.port"), ("HTTP.Port", "http.port"), ("udp-port", "media.udp_port"),
            ("media.port", "http.port"),
            ("cert", "http.tls.certificate"), ("http", nil), ("colour", nil), ("", nil), ("p", nil),
        ])
    func nearest(name: String, expected: String?) {
        let known = ["http.port", "private.port", "media.udp_port", "http.tls.certificate"]
        #expect(Spelling.nearest(to: name, among: known) == expected)
    }
}
