import Primitives
import Recorder
import Testing

@testable import OfflineJobs

@Suite("The queue of jobs")
struct JobQueueTests {
    private func job(_ number: Int) -> RecordingJob {
        RecordingJob(
            sid: "JB_\(number)", recording: "RC_1", kind: .composition, layout: .grid, width: 640, height: 360,
            encoding: RecordingJob.Encoding(frameRate: 30, bitrate: 1_000_000), createdAt: Int64(number))
    }

    /// The next jobs, as often as it is asked.
    private func next(_ queue: inout JobQueue, _ count: Int = 1) -> [String?] {
        (0..<count).map { _ in queue.next { _ in true }?.sid }
    }

    @Test("As many run as may, in the order in which they came, and as many wait")
    func bounds() {
        var queue = JobQueue(maximumRunning: 2, maximumQueued: 3)
        for number in 1...3 {
            let isKept = queue.reserve()
            #expect(isKept)
            queue.release()
            queue.add(job(number))
        }
        let isRefused = !queue.reserve()
        #expect(isRefused)
        #expect(next(&queue, 3) == ["JB_1", "JB_2", nil])
        #expect(queue.counts == (1, 2))
        // A place that is kept counts.
        let kept = (0..<3).map { _ in queue.reserve() }
        #expect(kept == [true, true, false])
        for _ in 0..<2 { queue.release() }
        queue.end("JB_1")
        #expect(next(&queue) == ["JB_3"])
        #expect(queue.counts == (0, 2))
        queue.end("JB_2")
        queue.end("JB_3")
        #expect(next(&queue) == [nil])
        #expect(queue.counts == (0, 0))
    }

    @Test("One that waits is removed at once; one that runs is marked as cancelled; one that is over is neither")
    func cancel() {
        var queue = JobQueue(maximumRunning: 1, maximumQueued: 3)
        for number in 1...3 { queue.add(job(number)) }
        #expect(next(&queue) == ["JB_1"])
        let taken = ["JB_2", "JB_1"].map { queue.cancel($0) }
        #expect(taken == [true, false])
        #expect(queue.isCancelled("JB_1") && !queue.isCancelled("JB_3"))
        queue.end("JB_1")
        #expect(!queue.isCancelled("JB_1"))
        let isTaken = queue.cancel("JB_1")
        #expect(!isTaken && !queue.isCancelled("JB_1"))
        #expect(next(&queue) == ["JB_3"])
    }

    @Test(
        "One whose files are being replaced lets others pass; one that is cancelled while it is written down never waits"
    )
    func files() {
        var queue = JobQueue(maximumRunning: 2, maximumQueued: 3)
        for number in 1...2 { queue.add(job(number)) }
        let first = queue.next { $0.sid != "JB_1" }?.sid
        let none = queue.next { $0.sid != "JB_1" }?.sid
        #expect(first == "JB_2" && none == nil)
        #expect(next(&queue) == ["JB_1"])
        let isKept = queue.reserve()
        let isTaken = queue.cancel("JB_3")
        let isAdded = queue.add(job(3))
        queue.release()
        #expect(isKept && !isTaken && !isAdded)
        let isAddedLater = queue.add(job(3))
        #expect(isAddedLater, "the name is not remembered")
    }

    @Test(
        "A job at work is left for the first of these reasons, and goes on without one",
        arguments: [
            (JobCircumstances(longest: .seconds(60)), nil),
            (JobCircumstances(age: .seconds(60), longest: .seconds(60)), nil),
            (JobCircumstances(age: .milliseconds(60_001), longest: .seconds(60)), .timeLimit),
            (JobCircumstances(longest: .seconds(60), hasRoom: false), .diskFull),
            (JobCircumstances(isDeleted: true, age: .seconds(61), longest: .seconds(60), hasRoom: false), .deleted),
            (JobCircumstances(isStopping: true, isDeleted: true, longest: .seconds(60)), .stopped),
            (JobCircumstances(isCancelled: true, isStopping: true, longest: .seconds(60)), .cancelled),
        ] as [(JobCircumstances, JobFault?)])
    func faults(circumstances: JobCircumstances, fault: JobFault?) {
        #expect(circumstances.fault == fault)
    }

    @Test("A program is found by its path or where the system keeps programs, and none is none")
    func program() {
        var configuration = JobConfiguration()
        #expect(configuration.path { $0 == "/usr/bin/ffmpeg" } == "/usr/bin/ffmpeg")
        #expect(configuration.path { _ in false } == nil)
        configuration.program = "/opt/ffmpeg"
        #expect(configuration.path { $0 == "/opt/ffmpeg" } == "/opt/ffmpeg")
        configuration.program = ""
        #expect(configuration.path { _ in true } == nil)
    }
}

@Suite("Programs that run behind all others")
struct ChildProgramTests {
    private func run(
        _ path: String, _ arguments: [String], memory: UInt64 = 0, fault: @escaping () -> JobFault? = { nil }
    ) throws -> (end: ChildProgram.End, output: String) {
        var output: [UInt8] = []
        let end = try ChildProgram(path, folder: "/tmp", memoryBytes: memory).run(
            arguments, fault: fault, output: { output += $0 })
        return (end, String(decoding: output, as: UTF8.self))
    }

    @Test("Output and words come back with the exit code; arguments are no shell's")
    func output() throws {
        let found = try run("/bin/echo", ["$(id)", "a;b", "c d"])
        #expect(found.output == "$(id) a;b c d\n" && found.end.code == 0)
        let failed = try run("/bin/cat", ["/no such file"])
        #expect(failed.end.code == 1 && failed.end.words.contains("No such file"))
    }

    @Test("It runs at the lowest priority, in its folder, with none of this process's files and variables")
    func surroundings() throws {
        #expect(try run("/usr/bin/nice", []).output == "19\n")
        #expect(try run("/bin/pwd", []).output == "/tmp\n")
        #expect(try run("/usr/bin/env", []).output == "PATH=/usr/local/bin:/usr/bin:/bin\nLC_ALL=C\n")
        // 3 is the folder that is being listed.
        #expect(try run("/bin/ls", ["/proc/self/fd"]).output == "0\n1\n2\n3\n")
        // Every kernel has it, other than /proc/self/sched. The policy is the 41st field (proc(5)); the third is the first one behind the name. 5: SCHED_IDLE.
        let status = try run("/bin/cat", ["/proc/self/stat"]).output
        let fields = try #require(status.split(separator: ")").last).split(separator: " ")
        #expect(fields.count > 38 && fields[38] == "5")
    }

    @Test("It has no more memory than it may")
    func memory() throws {
        let limits = try run("/bin/cat", ["/proc/self/limits"], memory: 64 << 20).output
        #expect(limits.split(separator: "\n").contains { $0.hasPrefix("Max address space") && $0.contains("67108864") })
    }

    @Test("It is killed for a fault, which is thrown")
    func killed() {
        #expect(throws: JobFault.cancelled) { try run("/bin/sleep", ["1000"], fault: { .cancelled }) }
    }

    @Test("A program that is not there ends as shells say it, with the system's reason")
    func missing() throws {
        let end = try run("/no/such/program", []).end
        #expect(end.code == 127)
        #expect(end.words == "cannot begin: No such file or directory")
    }
}
