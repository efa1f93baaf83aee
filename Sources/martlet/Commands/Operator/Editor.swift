import Glibc

/// The user's editor, which uses the terminal while the command waits for it.
///
/// It is not started by Foundation, which puts every process that it starts into a separate process group: the kernel stops a program of another group than the
/// terminal's as soon as it reads from the terminal.
struct Editor {
    /// More than any policy has.
    private static let longest = 1 << 20
    private static let ending = ".json"

    /// The editor's environment, which also names the editor.
    private let environment: [String: String]

    init(environment: [String: String]) { self.environment = environment }

    /// A shell command: `nano`, `code --wait`.
    var command: String { environment["EDITOR"].flatMap { $0.isEmpty ? nil : $0 } ?? "vi" }

    /// The text after the user has edited it.
    func edit(_ text: String) throws(CommandError) -> [UInt8] {
        let path = try makeFile(text)
        defer { unlink(path) }
        guard try run(on: path) == 0 else {
            throw CommandError(message: "martlet: the editor '\(command)' failed; the policy is unchanged", exitCode: 1)
        }
        do throws(FileError) {
            return try FileContents.read(path, atMost: Self.longest)
        } catch {
            throw failed("the edited file \(error.problem)")
        }
    }

    /// A new file with `text`, which no other user can read.
    private func makeFile(_ text: String) throws(CommandError) -> String {
        let folder = environment["TMPDIR"].flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
        var name = Array("\(folder)/martlet-policy-XXXXXX\(Self.ending)".utf8CString)
        let file = mkstemps(&name, Int32(Self.ending.utf8.count))
        guard file >= 0 else { throw failed("no file can be made in \(folder): \(Self.words(errno))") }
        defer { close(file) }
        let path = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
            let fault = errno
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if fault != EINTR {
                unlink(path)
                throw failed("\(path) cannot be written: \(Self.words(fault))")
            }
        }
        return path
    }

    /// Runs the editor as a shell would, in the terminal's process group; returns its status as `waitpid` reports it. Only the editor handles interrupts from
    /// the keyboard: this process must survive to remove the file.
    private func run(on path: String) throws(CommandError) -> Int32 {
        let before = (signal(SIGINT, SIG_IGN), signal(SIGQUIT, SIG_IGN))
        defer {
            signal(SIGINT, before.0)
            signal(SIGQUIT, before.1)
        }
        // Signals that are ignored here would be ignored in the editor, too.
        var usual = sigset_t()
        sigemptyset(&usual)
        for number in [SIGINT, SIGQUIT] { sigaddset(&usual, number) }
        var attributes = posix_spawnattr_t()
        guard posix_spawnattr_init(&attributes) == 0 else { throw failed("out of memory") }
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setsigdefault(&attributes, &usual)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
        let words = Self.strings(["/bin/sh", "-c", "\(command) \"$1\"", "martlet", path])
        let variables = Self.strings(environment.map { "\($0.key)=\($0.value)" })
        defer { for word in words + variables { free(word) } }
        var child: pid_t = 0
        let fault = posix_spawn(&child, "/bin/sh", nil, &attributes, words, variables)
        guard fault == 0 else { throw failed("/bin/sh cannot be started: \(Self.words(fault))") }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 {
            guard errno == EINTR else { throw failed("the editor '\(command)' is lost: \(Self.words(errno))") }
        }
        return status
    }

    /// The texts as a C array: pointers that end with a null pointer.
    private static func strings(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] {
        texts.map { strdup($0) } + [nil]
    }

    private static func words(_ fault: Int32) -> String { String(cString: strerror(fault)) }

    private func failed(_ problem: String) -> CommandError {
        CommandError(message: "martlet: the policy could not be edited: \(problem)", exitCode: 1)
    }
}
