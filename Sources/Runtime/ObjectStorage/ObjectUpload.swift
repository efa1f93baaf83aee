import Cryptography
import Primitives

/// The upload of one file to a bucket: as a whole, or, if it is long, in parts that survive a restart. It is complete only when the storage reports the same
/// length and the same checksum.
public struct ObjectUpload: Sendable {
    /// The progress of an upload in parts, which must be kept for a restart.
    public struct Progress: Sendable, Hashable {
        var upload: String
        var partLength: Int
        /// For each part that the storage has: its entity tag, and SHA-256 and MD5 of what was sent.
        var parts: [Part] = []

        /// Parts that the storage has.
        public var count: Int { parts.count }

        struct Part: Sendable, Hashable {
            var tag: String
            var sha256: [UInt8]
            var md5: [UInt8]
        }
    }

    /// Longer files are uploaded in parts of this size.
    static let usualPart = 16 << 20
    /// S3 permits 10,000.
    private static let mostParts = 9_000

    private let store: ObjectStore
    private let key: String
    private let length: Int64
    private let read: @Sendable (_ offset: Int64, _ length: Int) -> [UInt8]
    private let isStopped: @Sendable () -> Bool
    private let partLength: Int

    /// An upload of `length` bytes, which `read` returns in pieces, as the object `key`. `partLength`: for tests.
    public init(
        _ store: ObjectStore, key: String, length: Int64, partLength: Int? = nil,
        isStopped: @escaping @Sendable () -> Bool,
        read: @escaping @Sendable (_ offset: Int64, _ length: Int) -> [UInt8]
    ) {
        self.store = store
        self.key = key
        self.length = length
        self.read = read
        self.isStopped = isStopped
        self.partLength = partLength ?? max(Self.usualPart, Int(length / Int64(Self.mostParts)) + 1)
    }

    /// Uploads the file, continuing from `progress`, and returns when the storage has proved that it has it. `keep` gets the progress, to be kept for the next
    /// try.
    public func run(
        from progress: Progress?, keep: (Progress?) -> Void
    ) throws(ObjectStore.Failure) {
        guard length > Int64(partLength) else { return try putWhole() }
        do throws(ObjectStore.Failure) {
            try putParts(from: progress, keep)
        } catch {
            // An upload that the storage no longer knows begins anew.
            if error.isUnknownUpload { keep(nil) }
            throw error
        }
        keep(nil)
    }

    private func piece(_ offset: Int64, _ count: Int) throws(ObjectStore.Failure) -> [UInt8] {
        let bytes = read(offset, count)
        guard bytes.count == count else { throw ObjectStore.Failure(words: "the file cannot be read") }
        return bytes
    }

    // MARK: - As a whole

    private func putWhole() throws(ObjectStore.Failure) {
        let bytes = try piece(0, Int(length))
        let sha256 = Digest.sha256(bytes)
        _ = try store.request(
            "PUT", key, headers: ["x-amz-checksum-sha256: \(ObjectStore.base64(sha256))"], body: bytes,
            isStopped: isStopped)
        try prove(sha256: ObjectStore.base64(sha256), tag: Digest.md5(bytes).map(\.hexadecimal))
    }

    // MARK: - In parts

    private func putParts(from former: Progress?, _ keep: (Progress?) -> Void) throws(ObjectStore.Failure) {
        var progress: Progress
        if let former, former.partLength == partLength { progress = former } else { progress = try begin() }
        keep(progress)
        while Int64(progress.parts.count) * Int64(partLength) < length {
            if isStopped() { throw ObjectStore.Failure(words: "the server stops") }
            let offset = Int64(progress.parts.count) * Int64(partLength)
            let bytes = try piece(offset, Int(min(Int64(partLength), length - offset)))
            let sha256 = Digest.sha256(bytes)
            let answer = try store.request(
                "PUT", key, query: "partNumber=\(progress.parts.count + 1)&uploadId=\(progress.upload)",
                headers: ["x-amz-checksum-sha256: \(ObjectStore.base64(sha256))"], body: bytes, isStopped: isStopped)
            guard let tag = answer.headers["etag"], tag.utf8.count <= 256, !tag.contains("<"), !tag.contains("&") else {
                throw ObjectStore.Failure(words: "the storage gave a part no entity tag")
            }
            progress.parts.append(Progress.Part(tag: tag, sha256: sha256, md5: Digest.md5(bytes) ?? []))
            keep(progress)
        }
        do throws(ObjectStore.Failure) {
            try complete(progress)
        } catch {
            // An earlier response may have been lost, or too late: then the storage has the object, and no longer an upload.
            guard error.isUnknownUpload, (try? prove(progress)) != nil else { throw error }
            return
        }
        try prove(progress)
    }

    private func begin() throws(ObjectStore.Failure) -> Progress {
        let answer = try store.request(
            "POST", key, query: "uploads=", headers: ["x-amz-checksum-algorithm: SHA256"], body: [],
            isStopped: isStopped)
        guard let upload = ObjectStore.element("UploadId", in: answer.body), Progress.isGood(upload) else {
            throw ObjectStore.Failure(words: "the storage gave the upload no id")
        }
        return Progress(upload: upload, partLength: partLength)
    }

    private func complete(_ progress: Progress) throws(ObjectStore.Failure) {
        var text = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
        for (index, part) in progress.parts.enumerated() {
            text += "<Part><PartNumber>\(index + 1)</PartNumber><ETag>\(part.tag)</ETag>"
            text += "<ChecksumSHA256>\(ObjectStore.base64(part.sha256))</ChecksumSHA256></Part>"
        }
        text += "</CompleteMultipartUpload>"
        let answer = try store.request(
            "POST", key, query: "uploadId=\(progress.upload)", body: Array(text.utf8), isStopped: isStopped)
        // The response begins before the storage is done, so its status may be 200 although it reports a failure.
        if let code = ObjectStore.element("Code", in: answer.body) {
            throw ObjectStore.Failure(words: "the storage could not put the parts together (\(code.prefix(64)))")
        }
    }

    // MARK: - Proof

    private func prove(_ progress: Progress) throws(ObjectStore.Failure) {
        let count = progress.parts.count
        let sha256 = ObjectStore.base64(Digest.sha256(progress.parts.flatMap(\.sha256)))
        let tag = Digest.md5(progress.parts.flatMap(\.md5)).map { "\($0.hexadecimal)-\(count)" }
        try prove(sha256: "\(sha256)-\(count)", tag: tag)
    }

    /// Asks the storage for the object's length, which must match, and its SHA-256, which must match, too. If a storage keeps none, the entity tag must match
    /// the MD5, or the CRC32C must match, which is all that Google's storage keeps for an object that was made of parts.
    private func prove(sha256: String, tag: String?) throws(ObjectStore.Failure) {
        let answer = try store.request("HEAD", key, headers: ["x-amz-checksum-mode: ENABLED"], isStopped: isStopped)
        guard answer.headers["content-length"] == String(length) else {
            throw ObjectStore.Failure(words: "the storage has an object of another length")
        }
        let theirs = answer.headers["etag"].map { String($0.filter { $0 != "\"" }) }
        if let checksum = answer.headers["x-amz-checksum-sha256"] {
            // Some storages omit the number of parts.
            guard checksum == sha256 || checksum == sha256.split(separator: "-").first.map(String.init) else {
                throw ObjectStore.Failure(words: "the storage has an object of another checksum")
            }
        } else if tag == nil || theirs != tag {
            guard let sum = ObjectStore.crc32c(in: answer.headers[ObjectStore.hashField]) else {
                throw ObjectStore.Failure(words: "the storage proves the object by no checksum")
            }
            guard try crc32c() == sum else {
                throw ObjectStore.Failure(words: "the storage has an object of another checksum")
            }
        }
    }

    /// The checksum of the file, which is read again for it.
    private func crc32c() throws(ObjectStore.Failure) -> UInt32 {
        var sum = CRC32c()
        var offset: Int64 = 0
        while offset < length {
            if isStopped() { throw ObjectStore.Failure(words: "the server stops") }
            let bytes = try piece(offset, Int(min(Int64(Self.usualPart), length - offset)))
            bytes.withUnsafeBytes { sum.update($0) }
            offset += Int64(bytes.count)
        }
        return sum.value
    }
}

extension ObjectStore {
    /// Has the storage drop the parts of an upload that will not continue: they would take space, and cost, as long as it keeps them. It is no failure if the
    /// storage no longer has them.
    public func abort(
        _ progress: ObjectUpload.Progress, of key: String, isStopped: @escaping @Sendable () -> Bool
    ) throws(Failure) {
        try delete(key, query: "uploadId=\(progress.upload)", isStopped)
    }

    /// Has the storage delete an object. It is no failure if the storage does not have it.
    public func delete(_ key: String, isStopped: @escaping @Sendable () -> Bool) throws(Failure) {
        try delete(key, query: "", isStopped)
    }

    private func delete(
        _ key: String, query: String, _ isStopped: @escaping @Sendable () -> Bool
    ) throws(Failure) {
        do throws(Failure) {
            _ = try request("DELETE", key, query: query, isStopped: isStopped)
        } catch {
            guard error.isNotFound else { throw error }
        }
    }
}

extension ObjectUpload.Progress {
    /// The form in a file: one line for the upload, and one for each part.
    public var text: String {
        var lines = ["\(upload) \(partLength)"]
        for part in parts {
            lines.append("\(part.tag) \(part.sha256.hexadecimal) \(part.md5.hexadecimal)")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// The progress in `text`; nil if the text is invalid.
    public init?(text: String) {
        let lines = text.split(separator: "\n")
        guard let first = lines.first?.split(separator: " "), first.count == 2, Self.isGood(String(first[0])),
            let length = Int(first[1]), length > 0
        else { return nil }
        self.init(upload: String(first[0]), partLength: length)
        for line in lines.dropFirst() {
            let words = line.split(separator: " ", omittingEmptySubsequences: false)
            guard words.count == 3, let sha256 = Self.bytes(words[1]), sha256.count == 32,
                let md5 = Self.bytes(words[2])
            else { return nil }
            parts.append(Part(tag: String(words[0]), sha256: sha256, md5: md5))
        }
    }

    /// Whether an upload's id can be used in a query as it is.
    static func isGood(_ upload: String) -> Bool {
        !upload.isEmpty && upload.utf8.count <= 2_048
            && upload.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0)
                    || [UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~")].contains($0)
            }
    }

    private static func bytes(_ text: Substring) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let byte = UInt8(String(decoding: digits[index..<(index + 2)], as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(byte)
        }
        return bytes
    }
}
