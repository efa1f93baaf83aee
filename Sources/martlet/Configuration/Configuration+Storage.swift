import ObjectStorage
import OfflineJobs

extension Configuration {
    /// Far more than two keys.
    private static let longestCredentials = 4_096

    /// Where finished files are uploaded to, with what the file of credentials says; nil: nowhere.
    func recordingStorage() throws(FileError) -> ObjectStore.Configuration? {
        guard let uploadEndpoint else { return nil }
        guard let uploadBucket else {
            throw FileError(problem: "recording.upload_endpoint needs recording.upload_bucket")
        }
        guard let path = uploadCredentials else {
            throw FileError(problem: "recording.upload_endpoint needs recording.upload_credentials")
        }
        let bytes: [UInt8]
        do throws(FileError) {
            bytes = try FileContents.read(path, atMost: Self.longestCredentials)
        } catch {
            throw FileError(problem: "the file of recording.upload_credentials \(error.problem)")
        }
        let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
        // A colon would end the access key where libcurl is given both.
        guard lines.count == 2, !lines[0].contains(":") else {
            throw FileError(
                problem:
                    "the file of recording.upload_credentials must have two lines: the access key, and the secret key")
        }
        return ObjectStore.Configuration(
            endpoint: uploadEndpoint, bucket: uploadBucket, region: uploadRegion,
            prefix: uploadPrefix.map { $0.isEmpty || $0.hasSuffix("/") ? $0 : $0 + "/" } ?? "", accessKey: lines[0],
            secretKey: lines[1])
    }

    /// What makes files of finished recordings, and what it may use.
    var jobs: JobConfiguration {
        var jobs = JobConfiguration()
        jobs.program = recordingProgram
        jobs.maximumRunning = recordingJobs
        jobs.maximumQueued = recordingJobQueue
        jobs.memoryBytes = UInt64(recordingJobMemory) << 20
        jobs.longest = recordingJobTime
        return jobs
    }
}
