import Foundation

/// The program: `martlet serve | token | check-config | version`.
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
            case .version: print("martlet \(version)")
            case .help(let text): print(text)
            }
        } catch {
            complain(error.message)
            exit(error.exitCode)
        }
    }

    /// The checked configuration; without a machine, for a command that does not serve.
    static func load(
        _ file: String?, development: Bool, on machine: Machine?
    ) throws(CommandError) -> Configuration {
        do {
            return try Configuration.load(
                file: file, environment: ProcessInfo.processInfo.environment, development: development, on: machine)
        } catch {
            throw CommandError(message: error.faults.map { "martlet: \($0)" }.joined(separator: "\n"), exitCode: 1)
        }
    }

    private static func complain(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }

    private static func serve(_ file: String?, _ isDevelopment: Bool) async throws(CommandError) {
        let server = try await Server.start(try load(file, development: isDevelopment, on: .current))
        // Not print: its buffer would keep the address from whoever reads through a pipe.
        if isDevelopment { FileHandle.standardOutput.write(Data((server.invitation + "\n").utf8)) }
        await Signals.untilAskedToEnd()
        await server.stop()
    }
}

/// Why a command did not do its work.
struct CommandError: Error {
    var message: String
    /// 1: it could not be done; 2: the command line is wrong.
    var exitCode: Int32
}
