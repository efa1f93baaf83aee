import Foundation
import Testing

@Suite("The generated C of the schema")
struct SchemaTests {
    @Test("The schema generates exactly the C that is in the source tree")
    func generated() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let folder = FileManager.default.temporaryDirectory.appending(path: "martlet-schema-\(getpid())")
        defer { try? FileManager.default.removeItem(at: folder) }
        let generator = Process()
        generator.executableURL = root.appending(path: "Tests/Support/generate-protocol.sh")
        generator.arguments = [folder.path()]
        try generator.run()
        generator.waitUntilExit()
        try #require(
            generator.terminationStatus == 0, "protobuf-c-compiler is installed by Tests/Support/install.sh test")
        let source = root.appending(path: "Sources/System/CLiveKitProtocol")
        for file in ["livekit.pb-c.c", "include/livekit.pb-c.h"] {
            #expect(
                try Data(contentsOf: folder.appending(path: file)) == Data(contentsOf: source.appending(path: file)),
                "\(file): run Tests/Support/generate-protocol.sh")
        }
    }
}
