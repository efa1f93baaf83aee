import PayloadFormats
import TestSupport

extension PayloadCodec {
    /// The summary of a payload given in hexadecimal.
    func summary(hex: String, marker: Bool = false, descriptor: DependencyDescriptor? = nil) -> PayloadSummary? {
        guard let bytes = ClientCaptures.bytes(hex) else { return nil }
        return summary(of: bytes.span.bytes, marker: marker, descriptor: descriptor)
    }
}
