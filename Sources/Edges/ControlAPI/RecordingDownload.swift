import EdgeSupport
import HTTPServing
import Recorder

/// A file of a recording as a response: as a whole or one range of it (RFC 9110 sections 14 and 15.3.7), in one piece or, if it is long, in several.
struct RecordingDownload: Sendable {
    private let file: RecordingFile
    private let name: String
    private let recorder: FileRecorder

    /// The longest part that is held in memory at once; a longer one is read while it is sent.
    static let longestPart: Int64 = 1 << 20
    /// Short, so that a client on a slow link has read one before it seems to have stopped reading.
    private static let pieceLength: Int64 = 64 << 10

    init(_ file: RecordingFile, name: String, of recorder: FileRecorder) {
        self.file = file
        self.name = name
        self.recorder = recorder
    }

    func response(to request: HTTPRequest) async throws(Problem) -> HTTPResponse {
        // The template decides which characters a name can have: none of them has a meaning in a header field.
        var headers: HTTPHeaders = [
            "Content-Type": name.hasSuffix(".webm") ? "video/webm" : "video/mp4", "Accept-Ranges": "bytes",
            "Cache-Control": "no-store",
            "Content-Disposition": "attachment; filename=\"\(name)\"", "ETag": EntityTag.field(file.version),
            "X-Content-Type-Options": "nosniff",
        ]
        // Parts of different versions do not fit together. For HEAD a range has no meaning (RFC 9110 section 14.2).
        let isSame = request.headers["If-Range"].map { $0 == EntityTag.field(file.version) } ?? true
        guard request.method == .get, isSame, let text = request.headers["Range"],
            let range = ByteRange(text, length: file.length)
        else { return try await part(0..<file.length, of: request, status: 200, headers) }
        guard range.first < file.length else {
            throw Problem(
                416, "range_not_satisfiable", "The file has \(file.length) bytes.",
                headers: ["Content-Range": "bytes */\(file.length)"])
        }
        headers["Content-Range"] = "bytes \(range.first)-\(range.last)/\(file.length)"
        return try await part(range.first..<range.last + 1, of: request, status: 206, headers)
    }

    private func part(
        _ part: Range<Int64>, of request: HTTPRequest, status: Int, _ headers: HTTPHeaders
    ) async throws(Problem) -> HTTPResponse {
        let length = part.upperBound - part.lowerBound
        if length <= Self.longestPart, request.method == .get {
            let bytes = try await onDisk { () async throws(FileRecorder.DiskIsBusy) in
                try await recorder.read(file, Int(length), at: part.lowerBound)
            }
            // If the disk fails, less is sent than was announced, so that the client notices.
            if bytes.count == length { return HTTPResponse(status: status, headers: headers, body: bytes) }
        }
        return HTTPResponse(
            status: status, headers: headers, stream: HTTPStream(pieces(part), length: length, keepAlive: []))
    }

    private func pieces(_ part: Range<Int64>) -> AsyncStream<[UInt8]> {
        let place = Place(part)
        return AsyncStream {
            let next = await place.advance(by: Self.pieceLength)
            guard !next.isEmpty else { return nil }
            // If too much waits for the disk, the download ends early, as when the disk fails: the client continues with a range request.
            let bytes = try? await recorder.read(file, next.count, at: next.lowerBound)
            return bytes?.isEmpty == false ? bytes : nil
        }
    }

    /// How far a download has come.
    private actor Place {
        private var rest: Range<Int64>

        init(_ part: Range<Int64>) { rest = part }

        /// What is to be sent next; empty at the end.
        func advance(by length: Int64) -> Range<Int64> {
            let next = rest.prefix(Int(length))
            rest = next.upperBound..<rest.upperBound
            return next
        }
    }
}

/// Performs `body` on a recording's files; if the disk is busy, the refusal says so.
func onDisk<Result>(_ body: () async throws(FileRecorder.DiskIsBusy) -> Result) async throws(Problem) -> Result {
    do throws(FileRecorder.DiskIsBusy) {
        return try await body()
    } catch {
        throw Problem(503, "overloaded", "Too much waits for the disk of the recordings; try again.")
    }
}

/// One range of bytes of a file: `bytes=A-B`, `bytes=A-` or `bytes=-N`. Anything else is ignored, as RFC 9110 permits.
struct ByteRange: Equatable {
    let first: Int64
    let last: Int64

    init?(_ text: String, length: Int64) {
        guard text.hasPrefix("bytes="), length > 0 else { return nil }
        let parts = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2,
            parts.allSatisfy({ $0.utf8.count <= 18 && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
        else { return nil }
        switch (Int64(parts[0]), Int64(parts[1])) {
        case (let first?, let last?) where first <= last: (self.first, self.last) = (first, min(last, length - 1))
        case (let first?, nil): (self.first, last) = (first, max(first, length - 1))
        case (nil, let count?) where count > 0: (first, last) = (max(0, length - count), length - 1)
        default: return nil
        }
    }
}
