import Primitives
import RoomService

/// `admission`: how busy the server may be before joins are refused. Shares are in percent of what the machine has; 100 means no limit.
struct AdmissionSettings: Sendable, Hashable {
    /// Of each media thread's time.
    var maxCPU = 85
    /// The limit of all media that is sent; nil: no limit.
    var maxBandwidthOut: Bitrate?
    /// Percent of the machine's or container's memory.
    var maxMemory = 90
    /// Percent of the files that the process may open.
    var maxOpenFiles = 90
    /// Of the datagrams that arrive.
    var maxSocketDrops = 1

    /// The limits in numbers: shares of `memory` bytes, if that is known, and of the `openFiles` that the process may open.
    func limits(memory: UInt64?, openFiles: Int) -> LoadLimits {
        var limits = LoadLimits()
        limits.workerBusy = share(of: maxCPU)
        limits.bandwidthOut = maxBandwidthOut
        if let part = share(of: maxMemory), let memory { limits.memoryBytes = UInt64(Double(memory) * part) }
        limits.openFiles = share(of: maxOpenFiles).map { Int(Double(openFiles) * $0) }
        limits.socketDrops = share(of: maxSocketDrops)
        return limits
    }

    /// A percentage as a share; nil if there is no limit.
    private func share(of percent: Int) -> Double? { percent < 100 ? Double(percent) / 100 : nil }
}

extension Setting {
    static let admission: [Setting] = [
        percent(
            "admission.max_cpu",
            "refuse joins while the media thread of the room, or for a new room every one, is busy for this share of its time",
            \.admission.maxCPU),
        value(
            "admission.max_bandwidth_out",
            "refuse joins while so much is sent to clients, with IP and UDP headers; unset: no limit",
            wants: "bits per second, 1000000 to 1000000000000", \.admission.maxBandwidthOut,
            parse: { Int64($0).flatMap { 1_000_000...1_000_000_000_000 ~= $0 ? .some(.bitsPerSecond($0)) : nil } },
            show: { $0.map { String($0.bitsPerSecond) } ?? "" }),
        percent(
            "admission.max_memory",
            "refuse joins while the process has this share of the machine's or container's memory",
            \.admission.maxMemory),
        percent(
            "admission.max_open_files", "refuse joins while this share of the files that the process may open is open",
            \.admission.maxOpenFiles),
        percent(
            "admission.max_socket_drops",
            "refuse joins while the kernel drops this share of the datagrams on the media ports because they were not read in time",
            \.admission.maxSocketDrops),
    ]

    private static func percent(_ path: String, _ summary: String, _ place: Place<Int>) -> Setting {
        number(path, "\(summary); 100: no limit", 1...100, place, unit: "percent")
    }
}
