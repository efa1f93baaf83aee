import Foundation

/// One line at the bottom of the terminal that shows the progress of a run; separate lines if there is no terminal.
final class ProgressLine: Sendable {
    private let isQuiet: Bool
    private let isTerminal = isatty(2) == 1

    init(isQuiet: Bool) { self.isQuiet = isQuiet }

    func show(_ text: String) {
        guard !isQuiet, isTerminal else { return }
        write("\r\u{1b}[K\(text)")
    }

    /// Shows a bar for `share`, 0 to 1, and a text.
    func show(share: Double, _ text: String) {
        let filled = Int(min(1, max(0, share)) * 20)
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: 20 - filled)
        if isTerminal { show("[\(bar)] \(text)") } else if !isQuiet { write("[\(bar)] \(text)\n") }
    }

    func clear() {
        if !isQuiet, isTerminal { write("\r\u{1b}[K") }
    }

    private func write(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}
