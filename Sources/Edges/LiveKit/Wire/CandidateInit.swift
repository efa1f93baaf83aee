import EdgeSupport
import Foundation

/// A trickled candidate: the JSON of `RTCIceCandidateInit`.
struct CandidateInit: Decodable, Sendable {
    var candidate: String

    /// nil where the text is no such JSON.
    init?(_ text: String) {
        guard let value = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)) else { return nil }
        self = value
    }
}
