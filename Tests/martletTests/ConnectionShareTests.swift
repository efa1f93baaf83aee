import HTTPServing
import Logging
import Testing

@testable import martlet

@Suite("Shares of the open files")
struct ConnectionShareTests {
    @Test(
        "Where the private listener serves the control API it has 1,024 connections, a quarter where there are few, and never fewer than probes need",
        arguments: [
            (1_000_000, true, 1_024, 20_000), (1_000_000, false, 16, 20_000), (4_146, true, 1_024, 3_072),
            (1_024, true, 243, 731), (1_024, false, 16, 958), (74, true, 16, 8), (74, false, 16, 8),
        ])
    func share(openFiles: Int, isAPIPrivate: Bool, privateOnes: Int, publicOnes: Int) throws {
        let share = try ConnectionShare(openFiles: openFiles, inUse: 30, isAPIPrivate: isAPIPrivate)
        #expect(share.privateConnections == privateOnes)
        #expect(share.publicConnections == publicOnes)
    }

    @Test("Too few open files are refused with how many are needed", arguments: [true, false])
    func tooFew(isAPIPrivate: Bool) {
        let error = #expect(throws: CommandError.self) {
            _ = try ConnectionShare(openFiles: 73, inUse: 30, isAPIPrivate: isAPIPrivate)
        }
        #expect(error?.message.contains("needs at least 74") == true, "\(error?.message ?? "")")
    }

    @Test("WebSockets may hold half of the private listener's connections")
    func listeners() throws {
        let quiet = Logger("test", output: LogOutput(level: .error) { _ in })
        var configuration = Configuration.development
        let usual = try configuration.listeners(openFiles: 1_000_000, media: 0, quiet)
        #expect(usual.privateHTTP.maximumConnections == 16)
        configuration.apiListener = .privateOne
        let listeners = try configuration.listeners(openFiles: 1_000_000, media: 0, quiet)
        #expect(listeners.privateHTTP.maximumConnections == 1_024 && listeners.privateHTTP.maximumWebSockets == 512)
        #expect(listeners.publicHTTP.maximumWebSockets == .max)
    }
}
