import Logging
import Synchronization

@testable import HTTPServing

/// A server on a free port of loopback, whose time stands unless the test moves it: a test that other tests keep waiting for the processor
/// runs into no timeout.
struct ServerFixture {
    let server: HTTPServer
    private let clock: ManualClock
    var port: UInt16 { server.port }

    init(
        webSockets: [WebSocketRoute] = [], clock: ManualClock = ManualClock(),
        configure: (inout HTTPServerConfiguration) -> Void = { _ in },
        admission: @escaping HTTPAdmission = { _ in .admit(isKnown: false) },
        handler: @escaping HTTPHandler = { request in
            HTTPResponse(text: "\(request.method) \(request.path) \(request.body.count)")
        }
    ) async throws {
        var configuration = HTTPServerConfiguration(host: "127.0.0.1", port: 0)
        configure(&configuration)
        self.clock = clock
        server = HTTPServer(
            configuration: configuration, logger: .quiet, clock: { clock.now })
        try await server.start(webSockets: webSockets, admission: admission, handler: handler)
    }

    /// Runs `body` against a server and stops it afterwards.
    static func with(
        webSockets: [WebSocketRoute] = [], clock: ManualClock = ManualClock(),
        configure: (inout HTTPServerConfiguration) -> Void = { _ in },
        admission: @escaping HTTPAdmission = { _ in .admit(isKnown: false) },
        handler: @escaping HTTPHandler = { request in
            HTTPResponse(text: "\(request.method) \(request.path) \(request.body.count)")
        },
        _ body: (HTTPServer) async throws -> Void
    ) async throws {
        let fixture = try await ServerFixture(
            webSockets: webSockets, clock: clock, configure: configure, admission: admission, handler: handler)
        do {
            try await body(fixture.server)
        } catch {
            await fixture.stop()
            throw error
        }
        await fixture.stop()
    }

    /// Stops the server, which needs time to pass.
    func stop() async {
        clock.release()
        await server.stop()
    }
}
