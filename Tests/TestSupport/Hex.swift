/// Bytes written as hexadecimal digits; spaces and line ends between them are for the reader.
public func bytes(hex: String) -> [UInt8] {
    let digits = hex.unicodeScalars.compactMap { Character($0).hexDigitValue }
    precondition(digits.count.isMultiple(of: 2), "an odd number of digits")
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}
