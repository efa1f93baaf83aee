/// Checks the places to which the server writes before anything is opened or made.
extension Configuration {
    /// Folders, files and credentials without which the server does not start.
    func storageFaults(_ machine: Machine) -> [ConfigurationFault] {
        var faults: [ConfigurationFault] = []
        if let databasePath, let reason = machine.databaseRefusal(databasePath) {
            faults.append(
                fault(
                    "storage.path",
                    "cannot keep the database in '\(databasePath)': \(reason); name a file that the server may write"))
        }
        // Closing any descriptor of a file releases all locks of the process on it, and files to be played are opened and closed.
        if let databasePath, let playbackDirectory, machine.isInside(databasePath, playbackDirectory) {
            faults.append(
                fault(
                    "storage.path",
                    "the database '\(databasePath)' is in the folder of files that may be played (playback.directory): "
                        + "a request to play it would release the locks that protect it; keep one of the two elsewhere")
            )
        }
        guard let directory = recording.directory else { return faults }
        if let reason = machine.folderRefusal(directory) {
            faults.append(
                fault(
                    "recording.directory",
                    "cannot record into '\(directory)': \(reason); name a folder that the server may write"))
        }
        do throws(SettingProblem) {
            _ = try recording.upload.storage()
        } catch {
            faults.append(fault(error.path, error.problem))
        }
        return faults
    }
}
