import Foundation
import Testing

@testable import martlet

@Suite("The user's editor")
struct EditorTests {
    /// What an editor makes of a text, and what is left of its file.
    private func edit(_ text: String, with editor: String) throws -> (text: String, left: [String]) {
        let folder = FileManager.default.temporaryDirectory.appending(path: "martlet-editor-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var environment = ProcessInfo.processInfo.environment
        environment["TMPDIR"] = folder
        environment["EDITOR"] = editor
        let result = Result { try Editor(environment: environment).edit(text) }
        let left = try FileManager.default.contentsOfDirectory(atPath: folder)
        return (String(decoding: try result.get(), as: UTF8.self), left)
    }

    @Test("The file is the user's alone, may be replaced as editors do, and is removed")
    func file() throws {
        let script = #"stat -c %a "$1" > "$1.new"; cat "$1" >> "$1.new"; mv "$1.new" "$1""#
        let (text, left) = try edit("a policy\n", with: "sh -c '\(script)' --")
        #expect(text == "600\na policy\n" && left == [])
    }

    /// The kernel stops programs of other groups that read from the terminal.
    @Test("The editor runs in the process group of the command")
    func group() throws {
        let (text, _) = try edit("", with: #"sh -c 'cut -d " " -f 5 /proc/$$/stat > "$1"' --"#)
        #expect(text == "\(getpgrp())\n")
    }

    @Test("Whatever the editor ends with but 0 leaves the policy as it is", arguments: ["false", "kill -9 $$;:"])
    func failing(editor: String) {
        let error = #expect(throws: CommandError.self) { _ = try edit("a policy", with: editor) }
        #expect(error?.exitCode == 1 && error?.message.contains("the policy is unchanged") == true)
    }
}
