import ObjectStorage

/// Where the server writes to, looked at before anything is opened or made.
extension Configuration {
    /// Far more than two keys.
    private static let longestCredentials = 4_096

    /// Folders, files and credentials without which the server does not start.
    func storageFaults(_ machine: Machine) -> [ConfigurationFault] {
        var faults: [ConfigurationFault] = []
        if let databasePath, let reason = machine.databaseRefusal(databasePath) {
            faults.append(
                fault(
                    "storage.path",
                    "cannot keep the database in '\(databasePath)': \(reason); name a file that the server may write"))
        }
        guard let recordingDirectory else { return faults }
        if let reason = machine.folderRefusal(recordingDirectory) {
            faults.append(
                fault(
                    "recording.directory",
                    "cannot record into '\(recordingDirectory)': \(reason); name a folder that the server may write"))
        }
        do throws(ConfigurationError) {
            _ = try recordingStorage()
        } catch {
            faults += error.faults
        }
        return faults
    }

    /// Where finished files are uploaded to, with what the file of credentials says; nil: nowhere.
    func recordingStorage() throws(ConfigurationError) -> ObjectStore.Configuration? {
        guard let uploadEndpoint else { return nil }
        func failure(_ path: String, _ problem: String) -> ConfigurationError {
            ConfigurationError(faults: [fault(path, problem)])
        }
        guard let uploadBucket else {
            throw failure("recording.upload_endpoint", "a storage needs a bucket; also set recording.upload_bucket")
        }
        guard let path = uploadCredentials else {
            throw failure(
                "recording.upload_endpoint", "a storage needs keys; also set recording.upload_credentials")
        }
        let bytes: [UInt8]
        do throws(FileError) {
            bytes = try FileContents.read(path, atMost: Self.longestCredentials)
        } catch {
            throw failure("recording.upload_credentials", "'\(path)' \(error.problem)")
        }
        let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
        // A colon would end the access key where libcurl is given both.
        guard lines.count == 2, !lines[0].contains(":") else {
            throw failure(
                "recording.upload_credentials",
                "'\(path)' must have two lines: the access key, without a colon, and the secret key")
        }
        return ObjectStore.Configuration(
            endpoint: uploadEndpoint, bucket: uploadBucket, region: uploadRegion,
            prefix: uploadPrefix.map { $0.isEmpty || $0.hasSuffix("/") ? $0 : $0 + "/" } ?? "", accessKey: lines[0],
            secretKey: lines[1])
    }
}
