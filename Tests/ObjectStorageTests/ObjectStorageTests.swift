import Testing

@testable import ObjectStorage

@Suite("What is said to a storage")
struct ObjectStorageTests {
    @Test(
        "An element of an answer is found, and nothing where it is not",
        arguments: [
            ("<A><UploadId>x-1</UploadId></A>", "x-1"), ("<UploadId></UploadId>", ""), ("<UploadId>x", nil), ("", nil),
            ("</UploadId><UploadId>y</UploadId>", "y"),
        ] as [(String, String?)])
    func elements(body: String, expected: String?) {
        #expect(ObjectStore.element("UploadId", in: Array(body.utf8)) == expected)
    }

    @Test("How far an upload has come outlasts a restart, and what is no such text is nothing")
    func progress() throws {
        var progress = ObjectUpload.Progress(upload: "abc-._~1", partLength: 16)
        for part in 0..<3 {
            progress.parts.append(
                ObjectUpload.Progress.Part(
                    tag: "\"tag\(part)\"", sha256: (0..<32).map { $0 + UInt8(part) },
                    md5: part == 2 ? [] : Array(repeating: 7, count: 16)))
        }
        #expect(ObjectUpload.Progress(text: progress.text) == progress)
        for text in [
            "", "\n", "id", "id x", "id 0", "a/b 16", "a&b=c 16", "id 16\ntag", "id 16\ntag 00 00",
            progress.text.dropLast(3) + "g",
        ] {
            #expect(ObjectUpload.Progress(text: String(text)) == nil, "\(text)")
        }
    }

    @Test(
        "Only a refusal may mean that the storage has forgotten an upload: no credentials, no time, and a busy storage do not",
        arguments: [(400, true), (403, false), (404, true), (408, false), (429, false), (500, true), (503, false)])
    func refusals(status: Int, mayBeUnknown: Bool) {
        #expect(ObjectStore.failure(status, [], "PUT").mayBeUnknownUpload == mayBeUnknown)
        #expect(!ObjectStore.Failure(words: "nobody listened").mayBeUnknownUpload)
    }

    @Test("A file that cannot be read is not uploaded as what is there of it")
    func unreadable() {
        let store = ObjectStore(
            ObjectStore.Configuration(
                endpoint: "http://127.0.0.1:9", bucket: "b", region: "r", prefix: "", accessKey: "a", secretKey: "s"))
        let upload = ObjectUpload(store, key: "k", length: 10, isStopped: { false }, read: { _, _ in [1, 2] })
        #expect(throws: ObjectStore.Failure(words: "the file cannot be read")) { try upload.run(from: nil) { _ in } }
    }
}
