import Foundation

/// The machine on which the figures of a run were measured.
enum Machine {
    static var description: String {
        let text = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
        let model = text.split(separator: "\n").first { $0.hasPrefix("model name") }?.split(separator: ":").last
        let name = model.map { $0.trimmingCharacters(in: .whitespaces) } ?? "unknown processor"
        let version = (try? String(contentsOfFile: "/proc/sys/kernel/osrelease", encoding: .utf8)) ?? ""
        return "\(ProcessInfo.processInfo.activeProcessorCount) x \(name), Linux "
            + version.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
