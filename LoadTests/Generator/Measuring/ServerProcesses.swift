import CLoadIO
import Foundation

/// The processes of the server under load, as /proc shows them.
struct ServerProcesses: Sendable {
    let ids: [Int32]

    /// CPU time of all threads of all processes in nanoseconds; nil if one has ended.
    func cpuTime() -> Int64? {
        var sum: Int64 = 0
        for id in ids {
            let time = loadio_process_time(id)
            guard time >= 0 else { return nil }
            sum += time
        }
        return ids.isEmpty ? nil : sum
    }

    /// Resident bytes of all processes, and how many threads they have.
    func memory() -> (resident: Int, threads: Int) {
        var resident = 0
        var threads = 0
        for id in ids {
            guard let text = try? String(contentsOfFile: "/proc/\(id)/status", encoding: .utf8) else { continue }
            for line in text.split(separator: "\n") {
                let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
                guard words.count > 1, let number = Int(words[1]) else { continue }
                if words[0] == "VmRSS:" { resident += number * 1_024 }
                if words[0] == "Threads:" { threads += number }
            }
        }
        return (resident, threads)
    }

    /// The processes that listen on a TCP port of this machine (in this network namespace).
    static func listening(onPort port: Int) -> ServerProcesses {
        let inodes = ["tcp", "tcp6"].flatMap { listeningSockets("/proc/net/\($0)", port) }
        guard !inodes.isEmpty else { return ServerProcesses(ids: []) }
        let names = Set(inodes.map { "socket:[\($0)]" })
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc"))?.compactMap { Int32($0) } ?? []
        return ServerProcesses(
            ids: processes.filter { process in
                let folder = "/proc/\(process)/fd"
                let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
                return descriptors.contains { descriptor in
                    let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(descriptor)")
                    return link.map(names.contains) ?? false
                }
            })
    }

    /// Inode numbers of listening sockets; columns as in proc_net_tcp(5).
    private static func listeningSockets(_ file: String, _ port: Int) -> [String] {
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else { return [] }
        return text.split(separator: "\n").dropFirst().compactMap { line in
            let words = line.split(separator: " ")
            guard words.count > 9, words[3] == "0A",
                Int(words[1].split(separator: ":").last ?? "", radix: 16) == port
            else { return nil }
            return String(words[9])
        }
    }
}
