/// Bytes written as hexadecimal digits; spaces and line ends between them are for readability. Ends the process if the text is anything else.
public func bytes(hex: String) -> [UInt8] {
    guard let bytes = ClientCaptures.bytes(hex) else { preconditionFailure("no hexadecimal text: \(hex)") }
    return bytes
}
