import Logging
import Primitives
import Testing

@testable import ObjectStorage
@testable import Recorder

@Suite("What is deleted while it is uploaded")
struct WithdrawalTests {
    private static let key = "RM_1/RC_1/TR_camera.000.mp4"

    /// A recording that has ended, with a file that goes in three parts, or as a whole.
    private func recorded(
        inParts: Bool = true
    ) throws -> (bench: RecorderBench, storage: TestStorage, uploader: Uploader) {
        let bench = try RecorderBench { $0.storage = TestStorage.configuration }
        bench.begin()
        bench.audio(0..<100)
        bench.read()
        bench.end()
        let storage = TestStorage()
        let length = try #require(bench.summary?.tracks.first?.files.first?.bytes)
        let uploader = try Uploader(
            bench.books, storage.store, partLength: inParts ? Int(length) / 3 + 1 : nil)
        return (bench, storage, uploader)
    }

    private func isPart(_ number: Int, _ request: ObjectStore.Request) -> Bool {
        request.method == "PUT" && request.query.hasPrefix("partNumber=\(number)&")
    }

    @Test("A recording that is deleted while a file goes in parts leaves neither parts nor an object, and no failure")
    func inParts() throws {
        let (bench, storage, uploader) = try recorded()
        storage.onRequest { [books = bench.books] request in
            if isPart(2, request) { _ = books.delete("RC_1") }
            return nil
        }
        #expect(uploader.upload("RC_1"))
        #expect(storage.openUploads == [2])
        uploader.withdraw(at: bench.now)
        #expect(storage.openUploads.isEmpty && storage.objects.isEmpty)
        #expect(bench.books.statistics.uploadFailures == 0 && bench.books.statistics.filesUploaded == 0)
        #expect(RecordingFolder(bench.folder).recordings().isEmpty)
    }

    @Test("A file that the storage has just as its recording is deleted does not stay there")
    func asWhole() throws {
        let (bench, storage, uploader) = try recorded(inParts: false)
        storage.onRequest { [books = bench.books] request in
            if request.method == "HEAD" { _ = books.delete("RC_1") }
            return nil
        }
        #expect(uploader.upload("RC_1"))
        #expect(storage.objects == [Self.key])
        uploader.withdraw(at: bench.now)
        #expect(storage.objects.isEmpty && bench.books.statistics.filesUploaded == 0)
    }

    @Test("What a storage carries out only after it has removed what was under way is removed, too, and then no more")
    func late() throws {
        let (bench, storage, uploader) = try recorded(inParts: false)
        storage.onRequest { [books = bench.books] request in
            if request.method == "HEAD" { _ = books.delete("RC_1") }
            return nil
        }
        #expect(uploader.upload("RC_1"))
        let again = try #require(uploader.withdraw(at: bench.now))
        #expect(again > bench.now && storage.objects.isEmpty)
        // The request of before has its effect now.
        storage.put(Self.key)
        #expect(uploader.withdraw(at: again) == nil)
        #expect(storage.objects.isEmpty)
    }

    @Test("What was put as a whole and not proved is removed, too, where its recording is deleted before the next try")
    func unproved() throws {
        let (bench, storage, uploader) = try recorded(inParts: false)
        storage.onRequest { $0.method == "HEAD" ? 503 : nil }
        #expect(!uploader.upload("RC_1"))
        #expect(storage.objects == [Self.key])
        #expect(bench.books.delete("RC_1"))
        storage.onRequest { _ in nil }
        uploader.withdraw(at: bench.now)
        #expect(storage.objects.isEmpty)
    }

    @Test(
        "Between two tries, and after a restart, the parts of what is deleted are removed, again where the storage is away",
        arguments: [false, true])
    func betweenTries(isRestarted: Bool) throws {
        let (bench, storage, uploader) = try recorded()
        storage.onRequest { isPart(2, $0) ? 503 : nil }
        #expect(!uploader.upload("RC_1"))
        #expect(storage.openUploads == [1] && bench.books.statistics.uploadFailures == 1)
        var (books, next) = (bench.books, uploader)
        if isRestarted {
            var configuration = RecorderConfiguration(directory: bench.folder)
            configuration.storage = TestStorage.configuration
            books = try RecordingBooks(configuration, bench.codec, logger: .quiet)
            next = try Uploader(books, storage.store)
        }
        #expect(books.delete("RC_1"))
        storage.onRequest { _ in 503 }
        let again = try #require(next.withdraw(at: bench.now))
        #expect(again > bench.now && storage.openUploads == [1])
        storage.onRequest { _ in nil }
        next.withdraw(at: bench.now)
        #expect(storage.openUploads == [1])
        #expect(next.withdraw(at: again) == nil)
        #expect(storage.openUploads.isEmpty && storage.objects.isEmpty)
    }
}
