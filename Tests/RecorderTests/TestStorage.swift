import Primitives
import Synchronization

@testable import ObjectStorage

/// A bucket in memory, with uploads in parts. It proves no object that was made of parts, as it does not compute checksums.
final class TestStorage: Sendable {
    private struct State {
        var objects: [String: Int] = [:]
        /// The checksum that came with each object.
        var checksums: [String: String] = [:]
        /// Parts of each upload that is neither completed nor aborted.
        var uploads: [String: Int] = [:]
        var lastUpload = 0
        /// What it answers to a request in place of what it would.
        var status: @Sendable (ObjectStore.Request) -> Int? = { _ in nil }
    }

    static let configuration = ObjectStore.Configuration(
        endpoint: "http://127.0.0.1:9", bucket: "b", region: "r", prefix: "", accessKey: "a", secretKey: "s")

    private let state = Mutex(State())

    var store: ObjectStore { ObjectStore(Self.configuration) { [self] in answer($0) } }
    var objects: [String] { state.withLock { $0.objects.keys.sorted() } }
    /// Parts of each open upload.
    var openUploads: [Int] { state.withLock { $0.uploads.values.sorted() } }

    /// An object is there, whoever has put it.
    func put(_ key: String) { state.withLock { $0.objects[key] = 0 } }

    /// `status` is called before each request, and gives its answer where it is not nil.
    func onRequest(_ status: @escaping @Sendable (ObjectStore.Request) -> Int?) {
        state.withLock { $0.status = status }
    }

    private func answer(_ request: ObjectStore.Request) -> ObjectStore.Answer {
        let status = state.withLock { $0.status }
        if let refused = status(request) { return ObjectStore.Answer(status: refused) }
        return state.withLock { state in
            let id = request.query.split(separator: "&").last.map(String.init) ?? ""
            switch (request.method, request.query) {
            case ("POST", "uploads="):
                state.lastUpload += 1
                state.uploads["uploadId=\(state.lastUpload)"] = 0
                return ObjectStore.Answer(
                    status: 200, body: Array("<UploadId>\(state.lastUpload)</UploadId>".utf8))
            case ("PUT", ""):
                state.objects[request.key] = request.body.count
                let name = "x-amz-checksum-sha256: "
                let checksum = request.headers.first { $0.hasPrefix(name) }
                state.checksums[request.key] = checksum.map { String($0.dropFirst(name.count)) }
                return ObjectStore.Answer(status: 200)
            case ("PUT", _):
                guard let parts = state.uploads[id] else { return ObjectStore.Answer(status: 404) }
                state.uploads[id] = parts + 1
                return ObjectStore.Answer(status: 200, headers: ["etag": "tag"])
            case ("HEAD", _):
                guard let length = state.objects[request.key] else { return ObjectStore.Answer(status: 404) }
                return ObjectStore.Answer(
                    status: 200,
                    headers: [
                        "content-length": String(length),
                        "x-amz-checksum-sha256": state.checksums[request.key] ?? "",
                    ])
            case ("DELETE", ""):
                state.objects[request.key] = nil
                return ObjectStore.Answer(status: 204)
            case ("DELETE", _):
                return ObjectStore.Answer(status: state.uploads.removeValue(forKey: id) == nil ? 404 : 204)
            default: return ObjectStore.Answer(status: 501)
            }
        }
    }
}
