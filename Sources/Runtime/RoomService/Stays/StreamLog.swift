import MediaControl
public import Primitives
import Rooms

/// The state of a track as received, or a subscription as sent, in a few seconds.
public struct StreamSample: Sendable, Hashable {
    /// Milliseconds since 1970.
    public var at: Int64
    /// Of all received layers of a track, or of the layer that a subscription is sent.
    public var bitrate: Bitrate
    /// The share of lost packets, 0 to 1: for a track after repair, for a subscription as its receiver reports.
    public var loss: Double
    /// The layer that a subscription is sent, from 0; nil: none, or a track.
    public var layer: Int?
}

/// The state of a room in a few seconds, for all participants together.
public struct RoomSample: Sendable, Hashable {
    /// Milliseconds since 1970.
    public var at: Int64
    public var participants: Int
    public var tracks: Int
    public var subscriptions: Int
    /// From all publishers.
    public var uplink: Bitrate
    /// To all subscribers.
    public var downlink: Bitrate
}

/// The last hour of a room, of its tracks and of its subscriptions, one sample in 5 s. The history of a track or a subscription is dropped when it ends.
struct StreamLog {
    /// An hour of samples: 12 kB for each track and subscription, 17 kB for a room.
    static let maxSamples = 720
    /// The maximum number of rooms, tracks and subscriptions of a server with a history: some 60 MB after an hour. Further ones have none until others end.
    static let maxStreams = 5_000

    fileprivate struct Stream {
        var samples = RecentValues<Packed>(capacity: StreamLog.maxSamples)
        /// For a track: counters at the last sample, for its loss rate.
        var lost: UInt64 = 0
        var received: UInt64 = 0
    }

    /// 16 bytes.
    struct Packed {
        /// Tenths of a second since the log began: enough for 13 years.
        var at: UInt32
        var bitsPerSecond: UInt32
        var loss: Float
        /// -1: none.
        var layer: Int32
    }

    /// 24 bytes.
    struct PackedRoom {
        var at: UInt32
        var participants: UInt32
        var tracks: UInt32
        var subscriptions: UInt32
        /// Kilobits per second.
        var uplink: UInt32
        var downlink: UInt32
    }

    private var beginning: Int64?
    private var room = RecentValues<PackedRoom>(capacity: Self.maxSamples)
    /// By sid.
    private var streams: [String: Stream] = [:]

    /// Adds a sample of everything in a report. The room and its tracks and subscriptions get histories up to a total of `most`. Returns the total.
    mutating func measure(_ report: RoomReport, at: Int64, upTo most: Int) -> Int {
        let beginning = beginning ?? at
        self.beginning = beginning
        // Each is moved, not copied.
        var former = streams
        // Those that have a history keep it.
        var newcomers = max(0, most - 1 - former.count)
        streams = [:]
        guard most > 0 else { return 0 }
        var sum = RoomSample(
            at: at, participants: report.participants.count, tracks: 0, subscriptions: 0, uplink: .zero,
            downlink: .zero)
        func add(_ sid: String, _ bitrate: Bitrate, layer: Int?, loss: (inout Stream) -> Double) {
            guard streams.count + 1 < most, former[sid] != nil || newcomers > 0 else { return }
            if former[sid] == nil { newcomers -= 1 }
            var stream = former.removeValue(forKey: sid) ?? Stream()
            let share = loss(&stream)
            stream.samples.append(
                Packed(
                    at: Self.packed(at - beginning), bitsPerSecond: UInt32(clamping: bitrate.bitsPerSecond),
                    loss: Float(share), layer: layer.map { Int32(clamping: $0) } ?? -1))
            streams[sid] = stream
        }
        for participant in report.participants {
            for track in participant.tracks {
                let layers = track.layers
                let bitrate = layers.reduce(Bitrate.zero) { $0 + $1.bitrate }
                sum.tracks += 1
                sum.uplink = sum.uplink + bitrate
                add(track.info.sid, bitrate, layer: nil) { stream in
                    stream.lossOf(
                        lost: layers.reduce(0) { $0 &+ $1.packetsLost },
                        received: layers.reduce(0) { $0 &+ $1.packetsReceived })
                }
            }
            for subscription in participant.subscriptions {
                let statistics = subscription.statistics
                sum.subscriptions += 1
                sum.downlink = sum.downlink + statistics.bitrate
                add(subscription.info.sid, statistics.bitrate, layer: statistics.layer) { _ in
                    statistics.fractionLost
                }
            }
        }
        func kilobits(_ bitrate: Bitrate) -> UInt32 { UInt32(clamping: bitrate.bitsPerSecond / 1_000) }
        room.append(
            PackedRoom(
                at: Self.packed(at - beginning), participants: UInt32(clamping: sum.participants),
                tracks: UInt32(clamping: sum.tracks), subscriptions: UInt32(clamping: sum.subscriptions),
                uplink: kilobits(sum.uplink), downlink: kilobits(sum.downlink)))
        return streams.count + 1
    }

    private static func packed(_ milliseconds: Int64) -> UInt32 { UInt32(clamping: milliseconds / 100) }
    private static func unpacked(_ tenths: UInt32) -> Int64 { Int64(tenths) * 100 }

    /// The number of histories, including the room's.
    var count: Int { beginning == nil ? 0 : streams.count + 1 }

    /// The room is empty.
    mutating func endStreams() { streams = [:] }

    /// The samples of a track or a subscription, oldest first.
    func samples(of sid: String) -> [StreamSample] {
        guard let beginning, let stream = streams[sid] else { return [] }
        return stream.samples.all.map {
            StreamSample(
                at: beginning + Self.unpacked($0.at), bitrate: .bitsPerSecond(Int64($0.bitsPerSecond)),
                loss: Double($0.loss),
                layer: $0.layer >= 0 ? Int($0.layer) : nil)
        }
    }

    /// The samples of the room, oldest first.
    var roomSamples: [RoomSample] {
        room.all.map {
            RoomSample(
                at: (beginning ?? 0) + Self.unpacked($0.at), participants: Int($0.participants), tracks: Int($0.tracks),
                subscriptions: Int($0.subscriptions), uplink: .kilobitsPerSecond(Int64($0.uplink)),
                downlink: .kilobitsPerSecond(Int64($0.downlink)))
        }
    }
}

extension StreamLog.Stream {
    /// The share of packets that were lost since the last sample. A few packets do not make a rate.
    fileprivate mutating func lossOf(lost: UInt64, received: UInt64) -> Double {
        defer { (self.lost, self.received) = (lost, received) }
        // The first sample, and a track whose layers began anew.
        guard samples.count > 0, lost >= self.lost, received >= self.received else { return 0 }
        let (gone, all) = (lost - self.lost, (lost - self.lost) + (received - self.received))
        return all > 20 ? Double(gone) / Double(all) : 0
    }
}
