import Foundation
import Testing

@testable import martlet

/// What the start says about the machine: each case changes one thing of a good one.
@Suite("Machine checks")
struct MachineFaultTests {
    private func load(
        _ text: String = "insecure: true", _ change: (inout Machine) -> Void
    ) throws -> (faults: [String], warnings: [String], notes: [String]) {
        var machine = ConfigurationFaultTests.machine
        change(&machine)
        let loaded = try ConfigurationFaultTests.load(text + ConfigurationFaultTests.key, on: machine)
        return (loaded.faults, loaded.warnings, loaded.configuration?.notes.map(\.description) ?? [])
    }

    @Test("A good machine is silent")
    func good() throws {
        let said = try load { _ in }
        #expect(said.faults + said.warnings + said.notes == [])
    }

    @Test("A clock that was never set is refused; one that nothing keeps is noted")
    func clock() throws {
        let faults = try load { $0.now = 1_000_000 }.faults
        #expect(
            faults.count == 1 && faults[0].contains("before 2026") && faults[0].contains("timedatectl set-ntp true"))
        let notes = try load { $0.isClockKept = false }.notes
        #expect(notes.count == 1 && notes[0].contains("chrony"))
    }

    @Test(
        "A file with secrets that every user can read is refused, with the line of the first and the command that mends it"
    )
    func exposed() throws {
        let faults = try load { machine in machine.isExposed = { $0.hasSuffix("m.yaml") } }.faults
        #expect(faults.count == 1 && faults[0].hasPrefix("m.yaml:2: a secret is in a file that every user"))
        #expect(faults[0].contains("chmod o-rwx"))
        // No secret in it.
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try Data("log: {level: debug}".utf8).write(to: folder)
        defer { try? FileManager.default.removeItem(at: folder) }
        var machine = ConfigurationFaultTests.machine
        machine.isExposed = { _ in true }
        _ = try Configuration.load(
            file: folder.path, environment: ["MARTLET_KEYS_APP": String(repeating: "k", count: 32)], development: false,
            on: machine)
    }

    @Test(
        "Each other file with secrets that every user can read is refused by the setting that names it, with the command that mends it",
        arguments: [
            (
                "http: {tls: {certificate: /etc/s/c.pem, key: /etc/s/k.pem}}", "http.tls.key",
                "chmod o-rwx /etc/s/k.pem'"
            ),
            (
                "recording: {directory: /var/r, upload_credentials: /etc/s/s3.keys}", "recording.upload_credentials",
                "chmod o-rwx /etc/s/s3.keys'"
            ),
            ("storage: {path: /etc/s/m.db}", "storage.path", "chmod o-rwx /etc/s/m.db*'"),
        ])
    func exposedFiles(text: String, setting: String, command: String) throws {
        let faults = try load("insecure: true\n" + text) { $0.isExposed = { $0.hasPrefix("/etc/s/") } }.faults
        let said = try #require(faults.first { $0.contains("every user") }, "\(faults)")
        #expect(said.contains("m.yaml:2: \(setting): ") && said.contains(command))
        #expect(faults.count { $0.contains("every user") } == 1)
        #expect(try load("insecure: true\n" + text) { _ in }.faults.allSatisfy { !$0.contains("every user") })
    }

    @Test("A file is exposed when its mode and those of all folders above let others in")
    func modes() throws {
        let files = FileManager.default
        let folder = files.temporaryDirectory.appending(path: UUID().uuidString)
        try files.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? files.removeItem(at: folder) }
        let file = folder.appending(path: "key.pem").path
        try Data().write(to: URL(filePath: file))
        func isExposed(file mode: Int, folder folderMode: Int) throws -> Bool {
            try files.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
            try files.setAttributes([.posixPermissions: folderMode], ofItemAtPath: folder.path)
            return FileContents.isExposed(file)
        }
        // The folder of temporary files may itself be closed to others.
        let mayEnter = try isExposed(file: 0o644, folder: 0o755)
        #expect(try isExposed(file: 0o602, folder: 0o755) == mayEnter)
        #expect(try !isExposed(file: 0o640, folder: 0o755))
        #expect(try !isExposed(file: 0o644, folder: 0o750))
        #expect(!FileContents.isExposed(folder.appending(path: "none").path))
    }

    @Test("Places that the server could not write to are refused, each with its reason and line")
    func unwritable() throws {
        let text = "insecure: true\nstorage:\n  path: /data/martlet.db\nrecording:\n  directory: /data/calls"
        #expect(try load(text) { _ in }.faults == [])
        let faults = try load(text) { machine in
            machine.databaseRefusal = { "'\($0)': Permission denied" }
            machine.folderRefusal = { "'\($0)': Read-only file system" }
        }.faults
        #expect(
            faults == [
                "m.yaml:3: storage.path: cannot keep the database in '/data/martlet.db': '/data/martlet.db': Permission denied; "
                    + "name a file that the server may write",
                "m.yaml:5: recording.directory: cannot record into '/data/calls': '/data/calls': Read-only file system; "
                    + "name a folder that the server may write",
            ])
    }

    @Test("A database below the folder of files that may be played is refused, with both settings")
    func playedDatabase() throws {
        let text = "insecure: true\nstorage:\n  path: /data/martlet.db\nplayback:\n  directory: /data"
        #expect(try load(text) { _ in }.faults == [])
        let faults = try load(text) { $0.isInside = { $0 == "/data/martlet.db" && $1 == "/data" } }.faults
        #expect(
            faults.count == 1 && faults[0].hasPrefix("m.yaml:3: storage.path: ")
                && faults[0].contains("playback.directory"), "\(faults)")
    }

    @Test("A file is in a folder where links lead into it, and before it is made")
    func inside() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        let played = folder.appending(path: "played").path, beside = folder.appending(path: "played-2").path
        for path in [played + "/deep", beside] {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        try Data().write(to: URL(filePath: played + "/deep/there.db"))
        try FileManager.default.createSymbolicLink(
            atPath: beside + "/link.db", withDestinationPath: played + "/deep/there.db")
        let link = folder.appending(path: "link").path
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: played)
        for path in [played + "/new.db", played + "/deep/there.db", beside + "/link.db", link + "/new.db"] {
            #expect(WritablePlaces.isInside(path, folder: played), "\(path)")
            #expect(WritablePlaces.isInside(path, folder: link + "/"), "\(path)")
            #expect(WritablePlaces.isInside(path, folder: "/"), "\(path)")
        }
        for path in [beside + "/new.db", folder.path + "/new.db", played + "/none/new.db"] {
            #expect(!WritablePlaces.isInside(path, folder: played), "\(path)")
        }
        #expect(!WritablePlaces.isInside(played + "/new.db", folder: folder.path + "/none"))
    }

    @Test("What the server would have to make or write is looked at, and nothing is made")
    func places() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "file").path
        try Data("something else".utf8).write(to: URL(filePath: file))
        let new = folder.appending(path: "new").path
        for path in [folder.path, folder.path + "/", new, new + "/deep/er"] {
            #expect(WritablePlaces.refusalOfFolder(path) == nil, "\(path)")
        }
        #expect(WritablePlaces.refusalOfFolder(file) == "'\(file)' is no folder")
        #expect(WritablePlaces.refusalOfFolder(file + "/in") == "'\(file)/in': Not a directory")
        #expect(WritablePlaces.refusalOfDatabase(new) == nil)
        #expect(WritablePlaces.refusalOfDatabase(new + "/martlet.db") == "there is no folder '\(new)'")
        #expect(WritablePlaces.refusalOfDatabase(file + "/martlet.db") == "Not a directory")
        #expect(WritablePlaces.refusalOfDatabase(folder.path) == "it is a folder")
        #expect(WritablePlaces.refusalOfDatabase(file) == "it is a file of another kind")
        let database = folder.appending(path: "good.db").path
        // An empty file is a database, too.
        for bytes in ["", "SQLite format 3\0 and more"] {
            try Data(bytes.utf8).write(to: URL(filePath: database))
            #expect(WritablePlaces.refusalOfDatabase(database) == nil)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).contains("new") == false)
    }

    @Test("The file in which the server has its database is not opened again: SQLite would lose its locks on it")
    func heldDatabase() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        // What is in a file is known only to who opens it.
        let (held, other) = (folder.appending(path: "held").path, folder.appending(path: "other").path)
        for path in [held, other] { try Data("something else".utf8).write(to: URL(filePath: path)) }
        let link = folder.appending(path: "link").path
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: held)
        let machine = Machine.current.holding(database: held)
        for path in [held, link] { #expect(machine.databaseRefusal(path) == nil, "\(path)") }
        #expect(machine.databaseRefusal(other) == "it is a file of another kind")
        #expect(Machine.current.holding(database: nil).databaseRefusal(held) == "it is a file of another kind")
    }

    @Test("A storage for recordings needs a bucket and a file with two keys")
    func uploads() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let keys = folder.appending(path: "keys").path
        func faults(_ lines: String) throws -> [String] {
            try load("recording:\n  directory: /data\n  upload_endpoint: https://s3.example.org\n" + lines) { _ in }
                .faults
        }
        #expect(
            try faults("") == [
                "m.yaml:3: recording.upload_endpoint: a storage needs a bucket; also set recording.upload_bucket"
            ])
        let bucket = "  upload_bucket: calls\n"
        #expect(
            try faults(bucket) == [
                "m.yaml:3: recording.upload_endpoint: a storage needs keys; also set recording.upload_credentials"
            ])
        let whole = bucket + "  upload_credentials: \(keys)"
        #expect(
            try faults(whole) == [
                "m.yaml:5: recording.upload_credentials: '\(keys)' cannot be read: No such file or directory"
            ])
        try Data("one line\n".utf8).write(to: URL(filePath: keys))
        #expect(
            try faults(whole) == [
                "m.yaml:5: recording.upload_credentials: '\(keys)' must have two lines: the access key, without a colon, and the secret key"
            ])
        try Data("key\nsecret\n".utf8).write(to: URL(filePath: keys))
        #expect(try faults(whole) == [])
    }

    @Test("Small socket buffers and a processor without AES are warned about, with what to do")
    func slow() throws {
        let buffers = try load { machine in
            machine.receiveBufferBytes = 212_992
            machine.sendBufferBytes = 212_992
        }.warnings
        #expect(buffers.count == 2)
        #expect(buffers[0].contains("208 KiB instead of 8192") && buffers[0].contains("net.core.rmem_max=8388608"))
        #expect(buffers[1].contains("net.core.wmem_max=8388608"))
        let aes = try load { $0.hasAES = false }.warnings
        #expect(aes.count == 1 && aes[0].contains("AES instructions"))
    }

    @Test("An announced address of another machine, and media threads without priority, are noted")
    func notes() throws {
        let text = "insecure: true\nmedia: {announced_addresses: [203.0.113.9, 192.0.2.2]}"
        let notes = try load(text) { $0.mayPreferThreads = false }.notes
        #expect(notes.count == 2 && notes[0].contains("LimitNICE=-10"))
        #expect(
            notes[1].hasSuffix(
                "m.yaml:2: media.announced_addresses: 203.0.113.9 is not an address of this machine: "
                    + "whoever has it must forward the media ports here"))
    }
}
