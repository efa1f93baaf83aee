import ObjectStorage
import Primitives
import Recorder
import Rooms

/// `recording`: where recordings are stored, how they are written, and which of them are kept.
struct RecordingSettings: Sendable {
    /// nil: nothing can be recorded.
    var directory: String?
    /// The most tracks that are recorded at once.
    var tracks = 500
    /// Megabytes of the disk that recordings leave free.
    var reserve = 1_024
    /// How long finished recordings are kept; zero: until somebody deletes them.
    var kept = TimeSpan.zero
    /// The most megabytes of recordings that are kept; zero: no limit.
    var maximum = 0
    /// Whether tables of samples are moved to the front of finished files.
    var frontIndex = true
    /// When a recorded track begins another file: after this time, or after so many megabytes.
    var segmentLength = TimeSpan.seconds(3_600)
    var segmentSize = 2_048
    var files = RecordingOptions.Files.tracks
    var fileName = FileNameTemplate.usual
    var upload = UploadSettings()
    var jobs = JobSettings()
    /// The most megabytes of each worker's records that wait for the disk.
    var buffer = 64

    /// The recorder's configuration; nil: nothing can be recorded. Throws if something is wrong with the storage to which finished files are uploaded.
    func recorder() throws(SettingProblem) -> RecorderConfiguration? {
        guard let directory else { return nil }
        var recorder = RecorderConfiguration(directory: directory)
        recorder.maximumTracks = tracks
        recorder.reserveBytes = Int64(reserve) << 20
        recorder.keptFor = kept
        recorder.maximumBytes = Int64(maximum) << 20
        recorder.movesIndexes = frontIndex
        recorder.segmentLength = segmentLength
        recorder.segmentBytes = Int64(segmentSize) << 20
        recorder.files = files
        recorder.keepsUploaded = upload.keepsFiles
        recorder.fileName = fileName
        recorder.storage = try upload.storage()
        return recorder
    }

    /// The most bytes of each worker's records that wait for the disk; nil: nothing can be recorded.
    var ringBytes: Int? { directory == nil ? nil : buffer << 20 }
}

/// `recording.upload_…`: the storage to which finished files are uploaded.
struct UploadSettings: Sendable {
    /// nil: nowhere.
    var endpoint: String?
    var bucket: String?
    var region = "us-east-1"
    var prefix: String?
    /// The file with the storage's access key and secret key.
    var credentials: String?
    var keepsFiles = true

    /// Far more than two keys.
    private static let longestCredentials = 4_096

    /// The storage to which finished files are uploaded, with the credentials from their file; nil: none.
    func storage() throws(SettingProblem) -> ObjectStore.Configuration? {
        guard let endpoint else { return nil }
        guard let bucket else {
            throw SettingProblem(
                "recording.upload_endpoint", "a storage needs a bucket; also set recording.upload_bucket")
        }
        guard let credentials else {
            throw SettingProblem(
                "recording.upload_endpoint", "a storage needs keys; also set recording.upload_credentials")
        }
        let bytes: [UInt8]
        do throws(FileError) {
            bytes = try FileContents.read(credentials, atMost: Self.longestCredentials)
        } catch {
            throw SettingProblem("recording.upload_credentials", "'\(credentials)' \(error.problem)")
        }
        let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
        // A colon would end the access key when libcurl is given both.
        guard lines.count == 2, !lines[0].contains(":") else {
            throw SettingProblem(
                "recording.upload_credentials",
                "'\(credentials)' must have two lines: the access key, without a colon, and the secret key")
        }
        return ObjectStore.Configuration(
            endpoint: endpoint, bucket: bucket, region: region,
            prefix: prefix.map { $0.isEmpty || $0.hasSuffix("/") ? $0 : $0 + "/" } ?? "", accessKey: lines[0],
            secretKey: lines[1])
    }
}

extension Setting {
    static let recording: [Setting] = [
        folder(
            "recording.directory", "folder for recordings; unset: nothing can be recorded", \.recording.directory),
        number("recording.tracks", "maximum tracks recorded at once", 1...100_000, \.recording.tracks),
        number(
            "recording.reserve", "megabytes of the disk that recordings leave free", 0...100_000_000,
            \.recording.reserve),
        seconds(
            "recording.kept", "delete a finished recording after; 0: never", 0...315_360_000, \.recording.kept),
        number(
            "recording.max_size",
            "megabytes of recordings to keep: beyond, the oldest finished ones are deleted; 0: no limit",
            0...100_000_000, \.recording.maximum),
        flag(
            "recording.front_index",
            "rewrite finished files with their index in front, so that players start before they have the whole file",
            \.recording.frontIndex),
        seconds(
            "recording.segment_length",
            "begin another file of a track after, with its next keyframe; a recording may request another value",
            10...86_400, \.recording.segmentLength),
        number(
            "recording.segment_size",
            "megabytes after which another file of a track begins; a recording may request another value", 1...2_048,
            \.recording.segmentSize),
        word(
            "recording.files",
            "what is recorded into one file: each track, the tracks of a participant, or all; a recording may request another value",
            RecordingOptions.Files.allCases.map { ($0.rawValue, $0) }, \.recording.files),
        value(
            "recording.file_name",
            "names of recorded files, without .mp4; a recording may request another value",
            wants:
                "letters, digits, '_', '-' and '.' with {room}, {recording}, {participant}, {track}, {source}, {time} and {segment}",
            \.recording.fileName, parse: { FileNameTemplate($0) }, show: { $0.text }),
        value(
            "recording.upload_endpoint",
            "S3-compatible storage to which finished files are uploaded, in path style; unset: nowhere",
            wants: "an http or https URL without a path, such as https://s3.eu-central-1.amazonaws.com",
            \.recording.upload.endpoint,
            parse: {
                CollectorAddress.isGood($0) && $0.split(separator: "/").count == 2 && !$0.hasSuffix("/")
                    ? .some($0) : nil
            },
            show: { $0 ?? "" }),
        value(
            "recording.upload_bucket", "bucket of the storage, which must exist", wants: "a bucket's name",
            \.recording.upload.bucket, parse: { $0.isEmpty || $0.contains("/") ? nil : .some($0) },
            show: { $0 ?? "" }),
        text(
            "recording.upload_region", "region of the storage, for which requests are signed",
            \.recording.upload.region),
        value(
            "recording.upload_prefix", "prefix of the keys of uploaded files: PREFIX/ROOM/RECORDING/FILE",
            wants: "a prefix of keys", \.recording.upload.prefix, parse: { .some($0) }, show: { $0 ?? "" }),
        file(
            "recording.upload_credentials",
            "file with the storage's access key in its first line and the secret key in its second",
            \.recording.upload.credentials),
        flag(
            "recording.upload_keep", "keep recorded files here when the storage has the whole recording",
            \.recording.upload.keepsFiles),
        number(
            "recording.buffer", "megabytes of each worker's media that may wait for a slow disk", 4...4_096,
            \.recording.buffer),
    ]
}
