/// Reads ffmpeg's progress reports (`-progress pipe:1`): lines of `key=value`.
struct ProgressReader {
    private var line: [UInt8] = []
    /// The duration of the written output, in microseconds.
    private(set) var position: Int64 = 0

    private static let longestLine = 200

    /// Consumes output; returns whether the position has changed.
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
        // ffmpeg reports N/A before there is any, and for some formats a time before zero.
        guard text.hasPrefix("out_time_us="),
            let value = Int64(text.dropFirst("out_time_us=".count).filter { $0 != " " })
        else { return }
        position = max(position, value)
    }
}
