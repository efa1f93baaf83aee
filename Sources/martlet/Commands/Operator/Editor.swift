import Glibc

/// The user's editor, which has the terminal while the command waits for it.
///
/// It is started by hand: Foundation puts what it starts into a process group of its own, and the kernel stops a program of another group than the terminal's
/// as soon as it reads from there.
struct Editor {
    /// More than any policy has.
    private static let longest = 1 << 20
    private static let ending = ".json"

    /// What the editor finds in its environment, and what says which one it is.
    private let environment: [String: String]

    init(environment: [String: String]) { self.environment = environment }

    /// A command of the shell: `nano`, `code --wait`.
    var command: String { environment["EDITOR"].flatMap { $0.isEmpty ? nil : $0 } ?? "vi" }

    /// What the user has made of `text`.
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

    /// A new file with `text`, which nobody else can read.
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

    /// Runs the editor as a shell would, in the group that has the terminal; how it ended, as `waitpid` says it. What is typed to interrupt it is its own
    /// business: this process must be there to remove the file.
    private func run(on path: String) throws(CommandError) -> Int32 {
        let before = (signal(SIGINT, SIG_IGN), signal(SIGQUIT, SIG_IGN))
        defer {
            signal(SIGINT, before.0)
            signal(SIGQUIT, before.1)
        }
        // What is ignored here would be ignored there.
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

    /// The texts as C has them: pointers that end with none.
    private static func strings(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] {
        texts.map { strdup($0) } + [nil]
    }

    private static func words(_ fault: Int32) -> String { String(cString: strerror(fault)) }

    private func failed(_ problem: String) -> CommandError {
        CommandError(message: "martlet: the policy could not be edited: \(problem)", exitCode: 1)
    }
}
