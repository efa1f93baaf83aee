import Testing

@testable import Recorder

@Suite("Names of recorded files")
struct FileNameTests {
    private func name(_ template: String, participant: String = "ada", room: String = "lecture", segment: Int = 7)
        -> String?
    {
        FileNameTemplate(template)?.name { field in
            switch field {
            case .room: room
            case .recording: "RC_1"
            case .participant: participant
            case .track: "TR_1"
            case .source: "camera"
            case .time: FileNameTemplate.moment(1_795_626_900_999)
            case .segment: FileNameTemplate.digits(segment)
            }
        }
    }

    @Test(
        "Fields become their values",
        arguments: [
            ("{track}.{segment}", "TR_1.007"), ("{room}-{participant}_{source}", "lecture-ada_camera"),
            ("{time}", "20261125T171500Z"), ("call{recording}", "callRC_1"), ("plain", "plain"),
        ])
    func fields(template: String, expected: String) {
        #expect(name(template) == expected)
    }

    @Test(
        "A number of a file has three digits, or as many as it needs",
        arguments: [(0, "000"), (42, "042"), (1_234, "1234")])
    func digits(segment: Int, expected: String) {
        #expect(name("{segment}", segment: segment) == expected)
    }

    @Test(
        "What no template is, is refused",
        arguments: [
            "", ".hidden", "../x", "a/b", "/etc/passwd", "{room", "{}", "{Room}", "{unknown}", "a b", "a\0b", "a}b",
            "\u{e5}",
            String(repeating: "a", count: 129),
        ])
    func refused(template: String) {
        #expect(FileNameTemplate(template) == nil)
    }

    @Test(
        "No value of a field leads out of the folder, hides the file or is an option",
        arguments: [
            "../../etc/passwd", "..", ".", "/", "a/b", "a\\b", "a\0b", "-rf", ".ssh", "", "a\nb", "%2e%2e",
            "\u{2024}\u{2024}/",
            "\u{202e}4pm", String(repeating: "x", count: 100_000),
        ])
    func traversal(value: String) throws {
        for template in ["{participant}", "{participant}{room}", "{room}.{participant}", "a.{participant}.{segment}"] {
            let name = try #require(self.name(template, participant: value, room: value))
            #expect(RecordingFolder.isSafe(name + ".mp4") && !name.hasPrefix("-") && !name.contains("/"), "\(name)")
        }
    }

    @Test("A long template of long values is a name that file systems take")
    func length() throws {
        let long = String(repeating: "x", count: 1_000)
        let name = try #require(
            self.name("{room}{room}{room}{room}{room}{room}{participant}{participant}", participant: long, room: long))
        #expect(name.utf8.count == 200)
    }
}
