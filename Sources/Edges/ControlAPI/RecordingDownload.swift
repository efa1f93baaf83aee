import EdgeSupport
import HTTPServing
import Recorder

/// A file of a recording as a response: as a whole, in pieces, or one range of it (RFC 9110 sections 14 and 15.3.7).
struct RecordingDownload: Sendable {
    private let file: RecordingFile
    private let name: String

    /// The longest part that is held in memory at once. A longer range is answered by its first part, which clients continue by themselves.
    private static let longestPart: Int64 = 4 << 20
    private static let pieceLength = 256 << 10

    init(_ file: RecordingFile, name: String) {
        self.file = file
        self.name = name
    }

    func response(to request: HTTPRequest) throws(Problem) -> HTTPResponse {
        var headers: HTTPHeaders = [
            "Content-Type": "video/mp4", "Accept-Ranges": "bytes", "Cache-Control": "no-store",
            "Content-Disposition": "attachment; filename=\"\(name)\"", "ETag": EntityTag.field(file.version),
        ]
        // A part of another version would fit no other part.
        let isSame = request.headers["If-Range"].map { $0 == EntityTag.field(file.version) } ?? true
        guard isSame, let text = request.headers["Range"], let range = ByteRange(text, length: file.length) else {
            guard file.length > Self.longestPart else {
                return HTTPResponse(status: 200, headers: headers, body: file.read(Int(file.length), at: 0))
            }
            return HTTPResponse(headers: headers, stream: HTTPStream(pieces(), keepAlive: []))
        }
        guard range.first < file.length else {
            throw Problem(
                416, "range_not_satisfiable", "The file has \(file.length) bytes.",
                headers: ["Content-Range": "bytes */\(file.length)"])
        }
        let bytes = file.read(Int(min(range.last - range.first + 1, Self.longestPart)), at: range.first)
        headers["Content-Range"] = "bytes \(range.first)-\(range.first + Int64(bytes.count) - 1)/\(file.length)"
        return HTTPResponse(status: 206, headers: headers, body: bytes)
    }

    private func pieces() -> AsyncStream<[UInt8]> {
        let place = Place()
        return AsyncStream {
            let bytes = file.read(Self.pieceLength, at: await place.advance(by: Int64(Self.pieceLength)))
            return bytes.isEmpty ? nil : bytes
        }
    }

    /// How far a download has come.
    private actor Place {
        private var offset: Int64 = 0

        func advance(by length: Int64) -> Int64 {
            defer { offset += length }
            return offset
        }
    }
}

/// One range of bytes of a file: `bytes=A-B`, `bytes=A-` or `bytes=-N`. Of anything else nothing is known, and it is ignored as RFC 9110 allows.
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
