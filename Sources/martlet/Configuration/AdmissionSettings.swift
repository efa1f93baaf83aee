import Primitives

/// `admission`: how far the server may be used before joins are refused. Shares are percent of what there is; 100 stands for no limit.
struct AdmissionSettings: Sendable, Hashable {
    /// Of each media thread's time.
    var maxCPU = 85
    /// Of all media that is sent; nil: no limit.
    var maxBandwidthOut: Bitrate?
    /// Of the machine's or container's memory.
    var maxMemory = 90
    /// Of the files that the process may open.
    var maxOpenFiles = 90
    /// Of the datagrams that arrive.
    var maxSocketDrops = 1

    /// A percentage as a share; nil where there is no limit.
    func share(of percent: Int) -> Double? { percent < 100 ? Double(percent) / 100 : nil }
}
