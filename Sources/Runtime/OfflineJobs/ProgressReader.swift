/// Reads what ffmpeg reports of its progress (`-progress pipe:1`): lines of `key=value`.
struct ProgressReader {
    private var line: [UInt8] = []
    /// How much of the output is written, in microseconds.
    private(set) var position: Int64 = 0

    private static let longestLine = 200

    /// Takes what has come; whether the position is another.
    mutating func receive(_ bytes: some Sequence<UInt8>) -> Bool {
        let former = position
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                finishLine()
            } else if line.count < Self.longestLine {
                line.append(byte)
            }
        }
        return position != former
    }

    private mutating func finishLine() {
        let text = String(decoding: line, as: UTF8.self)
        line.removeAll(keepingCapacity: true)
        // It says N/A before there is any, and of some formats a time before zero.
        guard text.hasPrefix("out_time_us="),
            let value = Int64(text.dropFirst("out_time_us=".count).filter { $0 != " " })
        else { return }
        position = max(position, value)
    }
}
