import AccessTokens
import EdgeSupport
import EdgeTestSupport
import Foundation
import HTTPServing
import Logging
import Recorder
import Synchronization
import Testing

@testable import ControlAPI

/// A server with one finished recording on its disk: `a.mp4`, which is longer than what is held in memory, and `b.mp4` with ten bytes.
private final class Archive {
    let api: TestAPI
    let content = Data((0..<Int(RecordingDownload.longestPart) + 100_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
    private let root = FileManager.default.temporaryDirectory.appending(path: "martlet-archive-\(UUID().uuidString)")
    private let recorder: FileRecorder

    init() throws {
        let folder = root.appending(path: "RM_1/RC_1")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try content.write(to: folder.appending(path: "a.mp4"))
        try Data("0123456789".utf8).write(to: folder.appending(path: "b.mp4"))
        try Data("no media".utf8).write(to: folder.appending(path: "TR_1.jsonl"))
        func track(_ sid: String, _ name: String, _ bytes: Int) -> String {
            """
            {"sid":"\(sid)","participant":"PA_1","identity":"ada","name":"","source":"camera","kind":"video","gaps":[],"gapCount":0,
             "framesWritten":1,"framesLost":0,"ended":true,"files":[{"name":"\(name)","codec":"vp8","startMilliseconds":0,"rtpTime":0,
             "clockRate":90000,"rotation":0,"durationMilliseconds":1000,"bytes":\(bytes),"samples":1,"index":"front"}]}
            """
        }
        let summary = """
            {"version":1,"sid":"RC_1","state":"ready","room":"studio","roomSid":"RM_1","startedAt":1,"endedAt":2,"ended":"stopped",
             "tracks":[\(track("TR_1", "a.mp4", content.count)),\(track("TR_2", "b.mp4", 10))]}
            """
        try Data(summary.utf8).write(to: folder.appending(path: "recording.json"))
        recorder = try FileRecorder(
            RecorderConfiguration(directory: root.path), rings: [],
            codec: RecordingCodec(
                encode: { JSONCoding.encode($0) },
                decode: { try? JSONCoding.decode(RecordingSummary.self, from: $0) },
                encodeLine: { JSONCoding.encode($0) },
                decodeLine: { try? JSONCoding.decode(LogLine.self, from: $0) }),
            logger: .quiet)
        api = TestAPI(recorder: recorder)
    }

    deinit {
        recorder.stop()
        try? FileManager.default.removeItem(at: root)
    }

    static func grant(room: String?) -> VideoGrant {
        var grant = VideoGrant()
        grant.roomAdmin = true
        grant.room = room
        return grant
    }

    func read(
        _ target: String, _ method: HTTPMethod = .get, token: Bool = true, headers: HTTPHeaders = [:]
    ) async throws -> HTTPResponse {
        let token = token ? try TestTokens.token("m", Self.grant(room: nil)) : nil
        return await api.answer(try request(method, target, token: token, headers: headers))
    }

    /// A link to `file` as the API gives it.
    func link(_ body: String, room: String? = nil) async throws -> Answer {
        try await api.ask(.post, "/v1/recordings/RC_1/links", body, grant: Self.grant(room: room))
    }

    func url(_ file: String, seconds: Int = 60) async throws -> String {
        let made = try await link(#"{"file":"\#(file)","seconds":\#(seconds)}"#)
        #expect(made.status == 201 && made.members["file"] as? String == file)
        #expect(made.members["expiresAt"] as? Int64 == (TestTokens.now + Int64(seconds)) * 1_000)
        return try #require(made.members["url"] as? String)
    }
}

extension HTTPResponse {
    /// The whole body, however it comes.
    fileprivate func bytes() async -> Data {
        guard let stream else { return Data(body) }
        var all = Data()
        for await piece in stream.pieces { all.append(contentsOf: piece) }
        return all
    }
}

@Suite("Control API: files of recordings")
struct RecordingFileTests {
    private static let file = "/v1/recordings/RC_1/file"

    @Test(
        "A long file comes whole, with its length, a name that is safe in a header, and a tag; HEAD gives the same without reading it"
    )
    func whole() async throws {
        let archive = try Archive()
        let whole = try await archive.read("\(Self.file)?name=a.mp4")
        #expect(whole.status == 200 && whole.stream?.length == Int64(archive.content.count))
        #expect(await whole.bytes() == archive.content)
        #expect(whole.headers["Content-Disposition"] == "attachment; filename=\"a.mp4\"")
        #expect(whole.headers["Content-Type"] == "video/mp4" && whole.headers["Accept-Ranges"] == "bytes")
        #expect(whole.headers["X-Content-Type-Options"] == "nosniff" && whole.headers["Cache-Control"] == "no-store")
        for (name, length) in [("a.mp4", Int64(archive.content.count)), ("b.mp4", 10)] {
            let head = try await archive.read("\(Self.file)?name=\(name)", .head, headers: ["Range": "bytes=1-2"])
            #expect(head.status == 200 && head.stream?.length == length && head.body.isEmpty)
            #expect(head.headers["ETag"]?.isEmpty == false && head.headers["Content-Range"] == nil)
        }
    }

    @Test(
        "A range is answered whole, a long one too, and one that is none by the file",
        arguments: [
            ("b.mp4", "bytes=2-4", 206, 2..<5), ("b.mp4", "bytes=7-", 206, 7..<10), ("b.mp4", "bytes=-4", 206, 6..<10),
            ("b.mp4", "bytes=0-99", 206, 0..<10), ("b.mp4", "bytes=0-1,4-5", 200, 0..<10),
            ("b.mp4", "x=0-1", 200, 0..<10),
            ("b.mp4", "bytes=5-2", 200, 0..<10), ("a.mp4", "bytes=10-", 206, 10..<1_148_576),
            ("a.mp4", "bytes=1048000-1049000", 206, 1_048_000..<1_049_001),
        ] as [(String, String, Int, Range<Int>)])
    func ranges(name: String, range: String, status: Int, expected: Range<Int>) async throws {
        let archive = try Archive()
        let content = name == "a.mp4" ? archive.content : Data("0123456789".utf8)
        let part = try await archive.read("\(Self.file)?name=\(name)", headers: ["Range": range])
        #expect(part.status == status)
        #expect(await part.bytes() == content.subdata(in: expected))
        let wanted = "bytes \(expected.lowerBound)-\(expected.upperBound - 1)/\(content.count)"
        #expect(part.headers["Content-Range"] == (status == 206 ? wanted : nil))
    }

    @Test(
        "A range behind the end is 416 with the length; If-Range gives a part of the same version and the whole of another"
    )
    func conditions() async throws {
        let archive = try Archive()
        let target = "\(Self.file)?name=b.mp4"
        let beyond = try await archive.read(target, headers: ["Range": "bytes=10-"])
        #expect(beyond.status == 416 && beyond.headers["Content-Range"] == "bytes */10")
        let tag = try #require(try await archive.read(target).headers["ETag"])
        #expect(try await archive.read(target, headers: ["Range": "bytes=0-0", "If-Range": tag]).status == 206)
        for other in ["\"other\"", "W/\(tag)", "Wed, 25 Nov 2026 10:00:00 GMT"] {
            #expect(try await archive.read(target, headers: ["Range": "bytes=0-0", "If-Range": other]).status == 200)
        }
    }

    @Test("A link opens its file without a token, whole, in parts and for HEAD, and nothing else")
    func links() async throws {
        let archive = try Archive()
        let url = try await archive.url("b.mp4")
        #expect(await (try archive.read(url, token: false)).bytes() == Data("0123456789".utf8))
        #expect(try await archive.read(url, token: false, headers: ["Range": "bytes=0-1"]).status == 206)
        #expect(try await archive.read(url, .head, token: false).stream?.length == 10)
        // The file's name beside it changes nothing.
        #expect(await (try archive.read("\(url)&name=a.mp4", token: false)).bytes() == Data("0123456789".utf8))
        let link = try #require(url.split(separator: "=").last)
        for target in ["/v1/recordings", "/v1/recordings/RC_1", "/v1/rooms", "/v1/ice-servers"] {
            #expect(try await archive.read("\(target)?link=\(link)", token: false).status == 401)
            #expect(try await archive.read("\(target)?access_token=\(link)", token: false).status == 401)
        }
        let elsewhere = try await archive.read("/v1/recordings/RC_2/file?link=\(link)", token: false)
        #expect(Answer(response: elsewhere).code == "link_invalid")
        for method in [HTTPMethod.delete, .post, .put] {
            #expect(try await archive.read(url, method, token: false).status == 405)
        }
        #expect(
            Answer(response: try await archive.read("/v1/recordings/RC_1?link=\(link)", .delete, token: false)).status
                == 401)
    }

    @Test(
        "A link that was changed, made by somebody else, or is an access token opens nothing; the answer does not repeat it"
    )
    func forged() async throws {
        let archive = try Archive()
        let url = try await archive.url("b.mp4")
        let link = String(try #require(url.split(separator: "=").last))
        let parts = link.split(separator: ".").map(String.init)
        let longer = try await archive.url("a.mp4", seconds: 3_600)
        let others = try #require(longer.split(separator: "=").last).split(separator: ".").map(String.init)
        let texts = [
            "\(parts[0]).\(others[1]).\(parts[2])", "\(parts[0]).\(parts[1])", "x", "", "\(parts[0]).\(parts[1]).",
            try TestTokens.token("m", Archive.grant(room: nil)),
        ]
        for text in texts {
            let answer = Answer(response: try await archive.read("\(Self.file)?link=\(text)", token: false))
            #expect(answer.status == 401 && answer.code == "link_invalid", "\(text)")
            #expect(text.isEmpty || text == "x" || !answer.response.text.contains(text))
        }
    }

    @Test("A link is made by whoever may read the recording, for a file that it has, for a day at most")
    func making() async throws {
        let archive = try Archive()
        #expect(
            try await archive.link(#"{"file":"b.mp4"}"#, room: "studio").members["expiresAt"] as? Int64
                == (TestTokens.now + 3_600) * 1_000)
        #expect(try await archive.link(#"{"file":"b.mp4"}"#, room: "other").code == "recording_not_found")
        for name in ["c.mp4", "../b.mp4", "recording.json", "TR_1.jsonl", ""] {
            #expect(try await archive.link(#"{"file":"\#(name)"}"#).code == "file_not_found", "\(name)")
        }
        #expect(try await archive.link("").status == 400, "of two files none is meant")
        for seconds in ["0", "-1", "86401", "1e30", "\"60\""] {
            #expect(try await archive.link(#"{"file":"b.mp4","seconds":\#(seconds)}"#).status == 400, "\(seconds)")
        }
        #expect(try await archive.link(#"{"name":"b.mp4"}"#).status == 400)
        var member = VideoGrant.join("studio")
        member.canSubscribe = true
        #expect(try await archive.api.ask(.post, "/v1/recordings/RC_1/links", "", grant: member).status == 403)
    }

    /// A finished recording with one file, or with none.
    private static func summary(hasFile: Bool = true) throws -> RecordingSummary {
        let joined = hasFile ? #"{"name":"b.mp4","state":"ready","part":0}"# : ""
        let text = """
            {"version":1,"sid":"RC_1","state":"ready","room":"studio","roomSid":"RM_1","startedAt":1,"tracks":[],"joined":[\(joined)]}
            """
        return try JSONCoding.decode(RecordingSummary.self, from: Array(text.utf8))
    }

    @Test("A link is good no longer than the token by which it was made, and as old as that for a revocation")
    func token() throws {
        let claims = AccessClaims(
            apiKey: TestTokens.key.name, identity: "m", expiresAt: TestTokens.now + 30, notBefore: 77,
            video: Archive.grant(room: nil))
        let made = try RecordingLink(to: nil, of: Self.summary(), by: claims).signed(
            by: TestTokens.gate, seconds: 3_600)
        #expect(made.expiresAt == (TestTokens.now + 30) * 1_000)
        let text = String(try #require(made.url.split(separator: "=").last))
        let age = Mutex<Int64?>(nil)
        let gate = TokenGate(verifier: TestTokens.verifier, clock: { TestTokens.now }) { claims in
            age.withLock { $0 = claims.issuedAt }
            return false
        }
        _ = try RecordingLink(text, gate)
        #expect(age.withLock { $0 } == 77)
    }

    @Test("A recording without a file has none to which a link could lead")
    func noFile() throws {
        let claims = AccessClaims(apiKey: TestTokens.key.name, expiresAt: TestTokens.now + 30)
        let refusal = #expect(throws: Problem.self) {
            try RecordingLink(to: nil, of: Self.summary(hasFile: false), by: claims)
        }
        #expect(refusal?.code == "file_not_found")
    }

    @Test("What is meant to stop a recording does not delete one that has ended")
    func states() async throws {
        let archive = try Archive()
        #expect(try await archive.read("/v1/recordings/RC_1?state=recording", .delete).status == 409)
        #expect(try await archive.read("/v1/recordings/RC_1?state=moon", .delete).status == 400)
        #expect(try await archive.read("/v1/recordings/RC_1").status == 200)
        #expect(try await archive.read("/v1/recordings/RC_1?state=ended", .delete).status == 204)
        #expect(try await archive.read("/v1/recordings/RC_1").status == 404)
    }

    @Test("A link is nothing once its time is over, its token is revoked or its recording is deleted")
    func endings() async throws {
        let archive = try Archive()
        let claims = try TestTokens.verifier.verify(TestTokens.token("m"), at: TestTokens.now)
        func link(at moment: Int64, revoked: Bool) throws -> RecordingLink {
            let gate = TokenGate(verifier: TestTokens.verifier, clock: { moment }, isRevoked: { _ in revoked })
            let made = try RecordingLink(to: nil, of: Self.summary(), by: claims).signed(
                by: TestTokens.gate, seconds: 60)
            return try RecordingLink(String(try #require(made.url.split(separator: "=").last)), gate)
        }
        let good = try link(at: TestTokens.now + 59, revoked: false)
        #expect(good.file == "b.mp4" && good.recording == "RC_1" && good.issuer == TestTokens.key.name)
        #expect(
            #expect(throws: Problem.self) { try link(at: TestTokens.now + 60, revoked: false) }?.code == "link_expired")
        #expect(#expect(throws: Problem.self) { try link(at: TestTokens.now, revoked: true) }?.code == "link_invalid")
        let url = try await archive.url("b.mp4")
        #expect(try await archive.read("/v1/recordings/RC_1", .delete).status == 204)
        #expect(try await archive.read(url, token: false).status == 404)
    }
}
