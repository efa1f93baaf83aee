import AccessTokens
import EdgeSupport
import EdgeTestSupport
import Foundation
import HTTPServing
import Logging
import OfflineJobs
import Recorder
import Testing

@testable import ControlAPI

/// A server with finished recordings `RC_0`, `RC_1` … on its disk, each begun after the one before, in the room `studio`; the last in `attic`. Jobs wait for ever:
/// there is no thread that does them.
private final class Shelf {
    let api: TestAPI
    private let root = FileManager.default.temporaryDirectory.appending(path: "martlet-shelf-\(UUID().uuidString)")
    private let recorder: FileRecorder
    let jobs: JobRunner

    /// `former` are jobs on the first one that an earlier life of the server has left.
    init(
        recordings: Int = 2, codec: String = "vp8", program: String = "/bin/true", queued: Int = 2,
        former: [String] = []
    ) throws {
        for number in 0..<recordings {
            let folder = root.appending(path: "RM_1/RC_\(number)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let room = number == recordings - 1 ? "attic" : "studio"
            func track(_ sid: String, _ kind: String) throws -> String {
                try Data("0123456789".utf8).write(to: folder.appending(path: "\(sid).mp4"))
                return """
                    {"sid":"\(sid)","participant":"PA_1","identity":"ada","name":"","source":"camera","kind":"\(kind)","gaps":[],"gapCount":0,
                     "framesWritten":1,"framesLost":0,"ended":true,"files":[{"name":"\(sid).mp4","codec":"\(codec)","startMilliseconds":0,
                     "rtpTime":0,"clockRate":90000,"rotation":0,"durationMilliseconds":1000,"bytes":10,"samples":1,"index":"front"}]}
                    """
            }
            let summary = """
                {"version":1,"sid":"RC_\(number)","state":"ready","room":"\(room)","roomSid":"RM_1","startedAt":\(number + 1),
                 "endedAt":\(number + 2),"ended":"stopped","tracks":[\(try track("TR_1", "video")),\(try track("TR_2", "audio"))],
                 "jobs":[\(number == 0 ? former.joined(separator: ",") : "")]}
                """
            try Data(summary.utf8).write(to: folder.appending(path: "recording.json"))
        }
        recorder = try FileRecorder(
            RecorderConfiguration(directory: root.path), rings: [],
            codec: RecordingCodec(
                encode: { JSONCoding.encode($0) },
                decode: { try? JSONCoding.decode(RecordingSummary.self, from: $0) },
                encodeLine: { JSONCoding.encode($0) }, decodeLine: { try? JSONCoding.decode(LogLine.self, from: $0) }),
            logger: .quiet)
        var configuration = JobConfiguration()
        (configuration.program, configuration.maximumRunning, configuration.maximumQueued) = (program, 0, queued)
        jobs = try JobRunner(configuration, recorder.jobs, seed: 1, logger: .quiet)
        api = TestAPI(recorder: recorder, jobs: jobs)
    }

    deinit {
        jobs.stop()
        recorder.stop()
        try? FileManager.default.removeItem(at: root)
    }

    func ask(
        _ method: HTTPMethod, _ target: String, _ body: String = "", room: String? = nil
    ) async throws -> Answer {
        var grant = VideoGrant()
        grant.roomAdmin = true
        grant.room = room
        return try await api.ask(method, target, body, grant: grant)
    }

    /// All elements of a list, page by page.
    func pages(_ target: String, _ name: String) async throws -> [String] {
        var found: [String] = []
        var query = "limit=2"
        while true {
            let page = try await ask(.get, "\(target)?\(query)")
            found += page.list(name).compactMap { $0["sid"] as? String }
            guard let next = page.members["next"] as? String else { return found }
            query = "limit=2&after=\(PercentCoding.encode(next))"
        }
    }
}

@Suite("Control API: jobs on recordings")
struct JobTests {
    private static let jobs = "/v1/recordings/RC_0/jobs"

    @Test("Recordings come in pages, the newest first, without a gap")
    func recordings() async throws {
        let shelf = try Shelf(recordings: 5)
        #expect(try await shelf.pages("/v1/recordings", "recordings") == ["RC_4", "RC_3", "RC_2", "RC_1", "RC_0"])
        #expect(
            try await shelf.pages("/v1/rooms/studio/recordings", "recordings") == ["RC_3", "RC_2", "RC_1", "RC_0"])
        #expect(try await shelf.ask(.get, "/v1/recordings?limit=0").status == 400)
    }

    @Test("A job is begun with what it says and otherwise as is usual, shown, listed and cancelled")
    func life() async throws {
        let shelf = try Shelf()
        let made = try await shelf.ask(.post, Self.jobs, #"{"kind":"composition"}"#)
        let sid = try #require(made.members["sid"] as? String)
        #expect(made.status == 201 && made.response.headers["Location"] == "/v1/jobs/\(sid)" && sid.hasPrefix("JB_"))
        #expect(made.members["layout"] as? String == "grid" && made.members["state"] as? String == "queued")
        #expect(made.members["width"] as? Int == 1_280 && made.members["bitrate"] as? Int == 2_000_000)
        let other = try await shelf.ask(
            .post, Self.jobs, #"{"kind":"transcode","file":"TR_1.mp4","codec":"vp9","bitrate":300000,"frameRate":15}"#)
        #expect(other.members["source"] as? String == "TR_1.mp4" && other.members["codec"] as? String == "vp9")
        #expect(try await shelf.ask(.get, "/v1/recordings/RC_0").list("jobs").count == 2)
        #expect(try await shelf.ask(.get, "/v1/jobs").list("jobs").count == 2)
        #expect(try await shelf.ask(.get, "/v1/jobs?recording=RC_1").list("jobs").isEmpty)
        #expect(try await shelf.ask(.delete, "/v1/jobs/\(sid)?state=ended").code == "conflict")
        #expect(try await shelf.ask(.delete, "/v1/jobs/\(sid)?state=open").status == 204)
        #expect(try await shelf.ask(.get, "/v1/jobs/\(sid)").members["state"] as? String == "cancelled")
        #expect(try await shelf.ask(.delete, "/v1/jobs/\(sid)").status == 204)
        #expect(try await shelf.ask(.get, "/v1/jobs/\(sid)").code == "job_not_found")
    }

    @Test("A copy to WebM has nothing that is compressed; H.264 is refused before there is a job")
    func copy() async throws {
        let shelf = try Shelf(codec: "vp9")
        let made = try await shelf.ask(.post, Self.jobs, #"{"kind":"copy","file":"TR_1.mp4"}"#)
        #expect(made.status == 201 && made.members["container"] as? String == "webm")
        #expect(made.members["source"] as? String == "TR_1.mp4")
        for name in ["codec", "frameRate", "bitrate", "width", "height", "layout"] {
            #expect(made.members[name] == nil)
        }
        let audio = try await shelf.ask(.post, Self.jobs, #"{"kind":"copy","file":"TR_2.mp4","container":"webm"}"#)
        #expect(audio.status == 201, "a file without a video is copied, too")
        let other = try Shelf(codec: "h264")
        let refused = try await other.ask(.post, Self.jobs, #"{"kind":"copy","file":"TR_1.mp4"}"#)
        #expect(refused.status == 409 && refused.code == "not_playable")
        #expect(refused.response.text.contains("codec_not_in_container"))
        #expect(try await other.ask(.get, "/v1/jobs").list("jobs").isEmpty)
        let missing = try await shelf.ask(.post, Self.jobs, #"{"kind":"copy","file":"none.mp4"}"#)
        #expect(missing.code == "file_not_found")
    }

    @Test("A request that waits for the disk goes by the job as it is when its turn comes")
    func stale() async throws {
        let shelf = try Shelf()
        let made = try await shelf.ask(.post, Self.jobs, #"{"kind":"composition"}"#)
        let sid = try #require(made.members["sid"] as? String)
        // As each of these requests has found it.
        let job = try #require(shelf.jobs[sid])
        #expect(try await shelf.jobs.remove(job, in: .ended) == .conflict(.open))
        #expect(try await shelf.jobs.remove(job, in: .open) == .done)
        #expect(try await shelf.jobs.remove(job, in: .open) == .conflict(.ended))
        #expect(shelf.jobs[sid]?.state == .cancelled)
        #expect(try await shelf.jobs.remove(job) == .done)
        #expect(shelf.jobs[sid] == nil)
        #expect(try await shelf.jobs.remove(job, in: .ended) == .notFound)
    }

    @Test("As many jobs wait as may; further ones are refused until one is cancelled")
    func queue() async throws {
        let shelf = try Shelf()
        for _ in 0..<2 {
            #expect(try await shelf.ask(.post, Self.jobs, #"{"kind":"composition"}"#).status == 201)
        }
        let refused = try await shelf.ask(.post, Self.jobs, #"{"kind":"composition"}"#)
        #expect(refused.status == 503 && refused.code == "overloaded")
        #expect(refused.response.headers["Retry-After"] == "60")
        let sid = try #require(try await shelf.ask(.get, "/v1/jobs").list("jobs").first?["sid"] as? String)
        #expect(try await shelf.ask(.delete, "/v1/jobs/\(sid)").status == 204)
        #expect(try await shelf.ask(.post, Self.jobs, #"{"kind":"composition"}"#).status == 201)
    }

    @Test(
        "What makes no sense is refused, with the member that is wrong",
        arguments: [
            ("{}", "/kind"), (#"{"kind":"mixing"}"#, "/kind"), (#"{"kind":"copy"}"#, "/file"),
            (#"{"kind":"copy","file":"TR_1.mp4","container":"avi"}"#, "/container"),
            (#"{"kind":"copy","file":"TR_1.mp4","bitrate":300000}"#, "/bitrate"),
            (#"{"kind":"composition","container":"webm"}"#, "/container"),
            (#"{"kind":"transcode","file":"TR_1.mp4"}"#, "/bitrate"),
            (#"{"kind":"transcode","bitrate":300000}"#, "/file"),
            (#"{"kind":"composition","file":"TR_1.mp4"}"#, "/file"),
            (#"{"kind":"composition","codec":"vp9"}"#, "/codec"),
            (#"{"kind":"transcode","file":"TR_1.mp4","bitrate":300000,"layout":"grid"}"#, "/layout"),
            (#"{"kind":"composition","width":641}"#, "/width"), (#"{"kind":"composition","height":88}"#, "/height"),
            (#"{"kind":"composition","frameRate":61}"#, "/frameRate"),
            (#"{"kind":"composition","bitrate":1}"#, "/bitrate"),
            (#"{"kind":"composition","filter":"[0:v]null"}"#, "/filter"),
        ])
    func refused(body: String, place: String) async throws {
        let answer = try await Shelf().ask(.post, Self.jobs, body)
        #expect(answer.status == 400 && answer.response.text.contains(place), "\(answer.response.text)")
    }

    @Test("A file that is missing or has no video has its code; so has a recording that is missing, or of another room")
    func notThere() async throws {
        let shelf = try Shelf()
        func code(_ target: String, _ body: String, room: String? = nil) async throws -> String? {
            try await shelf.ask(.post, target, body, room: room).code
        }
        for name in ["nothing.mp4", "../RC_1/TR_1.mp4", "recording.json", "-f"] {
            #expect(
                try await code(Self.jobs, #"{"kind":"transcode","bitrate":300000,"file":"\#(name)"}"#)
                    == "file_not_found")
        }
        #expect(
            try await code(Self.jobs, #"{"kind":"transcode","bitrate":300000,"file":"TR_2.mp4"}"#) == "not_playable")
        #expect(try await code("/v1/recordings/RC_9/jobs", #"{"kind":"composition"}"#) == "recording_not_found")
        #expect(try await code(Self.jobs, #"{"kind":"composition"}"#, room: "attic") == "recording_not_found")
        #expect(try await code(Self.jobs, #"{"kind":"composition"}"#, room: "studio") == nil)
        #expect(try await shelf.ask(.get, "/v1/jobs", room: "attic").list("jobs").isEmpty)
    }

    @Test("What the end of the server interrupted waits again at the next start; after three times it has failed")
    func restart() async throws {
        func job(_ sid: String, _ state: String, tries: Int) -> String {
            """
            {"sid":"\(sid)","recording":"RC_0","kind":"composition","layout":"grid","codec":"h264","width":640,"height":360,
             "frameRate":30,"bitrate":500000,"createdAt":1,"state":"\(state)","progress":0.5,"tries":\(tries)}
            """
        }
        let shelf = try Shelf(former: [
            job("JB_a", "running", tries: 1), job("JB_b", "running", tries: 3), job("JB_c", "queued", tries: 0),
            job("JB_d", "failed", tries: 1),
        ])
        let found = try await shelf.ask(.get, "/v1/jobs").list("jobs")
        #expect(found.map { $0["state"] as? String } == ["queued", "failed", "queued", "failed"])
        #expect(found[0]["progress"] as? Double == 0 && found[1]["fault"] as? String == "interrupted")
        // Those that wait again count.
        #expect(try await shelf.ask(.post, Self.jobs, #"{"kind":"composition"}"#).code == "overloaded")
    }

    @Test("Without ffmpeg a job is refused as not available")
    func notAvailable() async throws {
        let answer = try await Shelf(program: "/no/such/ffmpeg").ask(.post, Self.jobs, #"{"kind":"composition"}"#)
        #expect(answer.status == 503 && answer.code == "not_available")
    }
}
