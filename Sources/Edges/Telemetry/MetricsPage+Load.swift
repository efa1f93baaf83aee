import Primitives
import RoomService

extension MetricsPage {
    /// How busy the server is, and why it refused joins.
    mutating func add(load: LoadReport) {
        add(
            "load", .gauge, "The largest of all load shares: 0 idle, 1 joins are refused. For autoscaling.",
            [([], load.load)])
        add(
            "load_share", .gauge, "Use of a resource as a share of its admission limit, 0 to 1.",
            LoadResource.allCases.compactMap { resource in
                load.shares[resource].map { ([("resource", resource.rawValue)], $0) }
            })
        add(
            "worker_busy_ratio", .gauge, "Smoothed share of its time that a media worker is busy, 0 to 1.",
            load.busy.enumerated().map { ([("worker", String($0.offset))], $0.element) })
        add(
            "bandwidth_out_bytes_per_second", .gauge, "Smoothed bytes per second to clients, with IP and UDP headers.",
            load.bandwidthOut.bitsPerSecond / 8)
        add(
            "overload_refusals_total", .counter, "Joins refused because a resource was at its admission limit.",
            LoadResource.allCases.map { ([("resource", $0.rawValue)], Double(load.refusals[$0] ?? 0)) })
    }
}
