import Foundation

/// The program: `martlet serve`, commands that call a running server, and commands that need none.
@main
enum Martlet {
    static let version = "0.1.0"

    static func main() async {
        do throws(CommandError) {
            switch try Command(arguments: Array(CommandLine.arguments.dropFirst())) {
            case .serve(let file, let isDevelopment): try await serve(file, isDevelopment)
            case .token(let request): print(try request.mint())
            case .checkConfig(let file):
                let configuration = try load(file, development: false, on: .current)
                for warning in configuration.warnings { complain("martlet: warning: \(warning)") }
                print("\(file): valid")
            case .showConfig(let file, let isDevelopment):
                let configuration = try load(file, development: isDevelopment, on: nil, needsKey: false)
                for line in configuration.shown { writeLine(line) }
            case .ask(let command): try command.run(writeLine, remark: complain)
            case .completion(let script): print(script)
            case .version: print("martlet \(version)")
            case .help(let text): print(text)
            }
        } catch {
            complain(error.message)
            end(error.exitCode)
        }
        end(0)
    }

    /// Ends the process neither by `exit` nor by returning: their handlers shut OpenSSL down while a thread may still use it, for example for a webhook's
    /// receiver whose answer is not awaited.
    private static func end(_ status: Int32) -> Never {
        fflush(nil)
        _exit(status)
    }

    /// The checked configuration; without a machine, for a command that does not serve.
    static func load(
        _ file: String?, development: Bool, on machine: Machine?, needsKey: Bool = true
    ) throws(CommandError) -> Configuration {
        do {
            return try Configuration.load(
                file: file, environment: ProcessInfo.processInfo.environment, development: development, on: machine,
                needsKey: needsKey)
        } catch {
            throw CommandError(message: error.faults.map { "martlet: \($0)" }.joined(separator: "\n"), exitCode: 1)
        }
    }

    /// Not by `print`: its buffer would hold an event back from a reader of a pipe.
    private static func writeLine(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }

    private static func complain(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }

    private static func serve(_ file: String?, _ isDevelopment: Bool) async throws(CommandError) {
        let signals = try Signals(isInteractive: isDevelopment)
        let server = try await Server.start(try load(file, development: isDevelopment, on: .current))
        if isDevelopment { writeLine(server.invitation) }
        await signals.untilAskedToEnd {
            await server.reload(file: file, environment: ProcessInfo.processInfo.environment)
        }
        await server.stop()
    }
}

/// Why a command failed.
struct CommandError: Error {
    var message: String
    /// 1: it could not be done; 2: the command line is wrong; 3: the server cannot be reached.
    var exitCode: Int32
}
