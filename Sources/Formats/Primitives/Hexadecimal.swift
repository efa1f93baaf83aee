extension Sequence<UInt8> {
    /// Two hexadecimal digits for each byte, in lower case.
    public var hexadecimal: String {
        map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
