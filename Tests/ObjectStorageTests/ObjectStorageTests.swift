import Testing

@testable import ObjectStorage

@Suite("Requests to a storage")
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

    // MARK: - Proof

    /// Whether nine bytes in three parts count as uploaded to a storage that keeps no SHA-256, and no MD5 of what was made of parts: `hash` is its field of
    /// checksums, and `status` what it says when it is to put the parts together.
    private func isProved(by hash: String?, status: Int = 200) -> Bool {
        let configuration = ObjectStore.Configuration(
            endpoint: "http://127.0.0.1:9", bucket: "b", region: "r", prefix: "", accessKey: "a", secretKey: "s")
        let store = ObjectStore(configuration) { request in
            switch (request.method, request.query) {
            case ("POST", "uploads="):
                return ObjectStore.Answer(status: 200, body: Array("<UploadId>1</UploadId>".utf8))
            case ("POST", _): return ObjectStore.Answer(status: status)
            case ("HEAD", _):
                var headers = ["content-length": "9", "etag": "\"CJj0\""]
                headers["x-goog-hash"] = hash
                return ObjectStore.Answer(status: 200, headers: headers)
            default: return ObjectStore.Answer(status: 200, headers: ["etag": "\"part\""])
            }
        }
        let upload = ObjectUpload(store, key: "k", length: 9, partLength: 4, isStopped: { false }) { offset, count in
            Array(Array("123456789".utf8)[Int(offset)..<(Int(offset) + count)])
        }
        do throws(ObjectStore.Failure) {
            try upload.run(from: nil) { _ in }
            return true
        } catch {
            return false
        }
    }

    @Test(
        "An object that was made of parts is proved by its CRC32C where the storage keeps nothing else of it (Google's)",
        arguments: [
            ("crc32c=4waSgw==", true), ("md5=JfnnlDI7RTiF9RgfG2JNCw==, crc32c=4waSgw==", true),
            ("crc32c=AAAAAA==", false), ("crc32c=4waS", false), ("crc32c=", false), (nil, false),
        ] as [(String?, Bool)])
    func sum(hash: String?, expected: Bool) {
        #expect(isProved(by: hash) == expected)
    }

    @Test("An upload whose last answer was lost is not begun anew where the storage has the object")
    func lostAnswer() {
        #expect(isProved(by: "crc32c=4waSgw==", status: 404))
        #expect(!isProved(by: "crc32c=AAAAAA==", status: 404) && !isProved(by: "crc32c=4waSgw==", status: 500))
    }
}
