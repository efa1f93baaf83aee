import Foundation
import Recorder
import Testing

@testable import LiveKit

@Suite("A recording as an egress")
struct EgressModelTests {
    @Test("An egress is active until its files are finished: while it is recorded, and while they are joined")
    func active() throws {
        func isActive(_ state: String, joined: String? = nil) throws -> Bool {
            let files = joined.map { #","joined":[{"name":"a.mp4","state":"\#($0)","part":0}]"# } ?? ""
            let text =
                #"{"version":1,"sid":"RC_1","state":"\#(state)","room":"r","roomSid":"RM_1","startedAt":0,"#
                + #""tracks":[]\#(files)}"#
            let summary = try JSONDecoder().decode(RecordingSummary.self, from: Data(text.utf8))
            return EgressModel(summary).isActive
        }
        #expect(try isActive("recording"))
        #expect(try isActive("ready", joined: "pending"))
        #expect(try !isActive("ready", joined: "ready"))
        #expect(try !isActive("ready"))
        #expect(try !isActive("empty"))
    }
}
