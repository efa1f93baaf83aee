import CLinux
import Glibc
public import Primitives

extension UDPSocket {
    /// Segments per message: what every kernel with UDP_SEGMENT accepts.
    static let maximumSegments = 64
    /// Bytes per message: the largest UDP payload over IPv4.
    static let maximumMessage = 65_507
    /// How long a full send buffer may stop the loop, once per call: a card at 10 Gbit/s sends 1.2 MB meanwhile.
    static let fullBufferWaitMilliseconds: Int32 = 1

    /// Sends every datagram of `batch` in order. Datagrams that cannot be sent are counted and lost; the batch is not changed.
    ///
    /// Adjacent datagrams with one destination and one size become one message that the kernel segments (UDP_SEGMENT); the last of a run
    /// may be shorter. Up to 64 messages go in one call. Datagrams for TCP connections are left to the caller; returns how many there are.
    @discardableResult
    public mutating func send(_ batch: borrowing OutboundBatch) -> Int {
        let entries = batch.entries
        guard let arena = batch.arena.baseAddress else { return 0 }
        var others = 0
        var next = 0
        var mayWait = true
        while next < entries.count {
            var count = 0
            let first = next
            while next < entries.count, count < Int(CLINUX_SEND_LIMIT), !entries[next].destination.isTCP {
                let run = runLength(of: entries, from: next)
                fill(messages + count, entries, next, run, arena)
                count += 1
                next += run
            }
            flush(count, entries: entries, first: first, arena: arena, mayWait: &mayWait)
            while next < entries.count, entries[next].destination.isTCP {
                others += 1
                next += 1
            }
        }
        return others
    }

    /// How many entries from `start` fit into one message: one destination, equal sizes, the last may be shorter.
    private func runLength(of entries: UnsafeBufferPointer<OutboundBatch.Entry>, from start: Int) -> Int {
        let size = entries[start].length
        guard segmentsSent, size > 0 else { return 1 }
        let destination = entries[start].destination
        let most = min(Self.maximumSegments, Self.maximumMessage / size, entries.count - start)
        var count = 1
        while count < most {
            let entry = entries[start + count]
            guard entry.length <= size, entry.length > 0, entry.destination == destination else { break }
            // One message has one DSCP.
            if marksMedia, entry.content != entries[start].content { break }
            count += 1
            if entry.length < size { break }
        }
        return count
    }

    private func fill(
        _ message: UnsafeMutablePointer<clinux_message>, _ entries: UnsafeBufferPointer<OutboundBatch.Entry>,
        _ first: Int, _ count: Int, _ arena: UnsafeMutableRawPointer
    ) {
        let entry = entries[first]
        let last = entries[first + count - 1]
        message.initialize(
            to: clinux_message(
                bytes: UnsafeRawPointer(arena + entry.offset), length: UInt32(last.offset + last.length - entry.offset),
                segment: count > 1 ? UInt16(entry.length) : 0, port: entry.destination.port,
                high: entry.destination.high, low: entry.destination.low, traffic_class: trafficClass(of: entry)))
    }

    /// The DSCP in the upper six bits of its octet (RFC 2474): EF is 46 (RFC 3246), AF41 34 (RFC 2597).
    @inline(__always) private func trafficClass(of entry: OutboundBatch.Entry) -> UInt8 {
        guard marksMedia else { return 0 }
        switch entry.content {
        case .audio: return 46 << 2
        case .video: return 34 << 2
        case .other: return 0
        }
    }

    /// Sends the first `count` prepared messages, even if the kernel refuses some of them.
    private mutating func flush(
        _ count: Int, entries: UnsafeBufferPointer<OutboundBatch.Entry>, first: Int, arena: UnsafeMutableRawPointer,
        mayWait: inout Bool
    ) {
        var done = 0
        var entry = first
        while done < count {
            counters.sendCalls &+= 1
            let sent = transmit(messages + done, count - done)
            if sent > 0 {
                for index in done..<(done + sent) { entry += account(messages[index]) }
                done += sent
                continue
            }
            let datagrams = Self.datagrams(in: messages[done])
            switch errno {
            case EINTR: continue
            case EMSGSIZE where !mayFragment:
                mayFragment = true
                clinux_set_fragments(descriptor, isIPv6 ? 1 : 0, 1)
                continue
            case EAGAIN, ENOBUFS:
                if mayWait, waitForRoom() {
                    mayWait = false
                    continue
                }
                mayWait = false
                counters.sendBufferFull &+= UInt64(datagrams)
            case EINVAL where datagrams > 1, EMSGSIZE where datagrams > 1, EIO where datagrams > 1:
                // EIO: the route has no checksum offload and never will; the other errors apply only to this message.
                if errno == EIO { segmentsSent = false }
                counters.segmentationRefused &+= 1
                sendOneByOne(entries[entry..<(entry + datagrams)], arena)
            default: counters.sendRefused &+= UInt64(datagrams)
            }
            entry += datagrams
            done += 1
        }
    }

    private mutating func sendOneByOne(
        _ entries: Slice<UnsafeBufferPointer<OutboundBatch.Entry>>, _ arena: UnsafeMutableRawPointer
    ) {
        for entry in entries {
            var message = clinux_message(
                bytes: UnsafeRawPointer(arena + entry.offset), length: UInt32(entry.length), segment: 0,
                port: entry.destination.port, high: entry.destination.high, low: entry.destination.low,
                traffic_class: trafficClass(of: entry))
            counters.sendCalls &+= 1
            if transmit(&message, 1) == 1 {
                counters.sent &+= 1
            } else if errno == EAGAIN || errno == ENOBUFS {
                counters.sendBufferFull &+= 1
            } else {
                counters.sendRefused &+= 1
            }
        }
    }

    /// Passes messages to the kernel, which stops at the first that it refuses; returns how many it accepted, or -1 with `errno` for none.
    private func transmit(_ messages: UnsafePointer<clinux_message>, _ count: Int) -> Int {
        guard let refusal else { return Int(clinux_send(descriptor, isIPv6 ? 1 : 0, messages, UInt32(count))) }
        for index in 0..<count {
            let error = refusal(messages[index])
            guard error != 0 else { continue }
            if index > 0 { return transmit(messages, index) }
            errno = error
            return -1
        }
        return Int(clinux_send(descriptor, isIPv6 ? 1 : 0, messages, UInt32(count)))
    }

    private mutating func account(_ message: clinux_message) -> Int {
        let datagrams = Self.datagrams(in: message)
        counters.sent &+= UInt64(datagrams)
        if message.segment != 0 { counters.segmented &+= UInt64(datagrams) }
        return datagrams
    }

    private static func datagrams(in message: clinux_message) -> Int {
        message.segment == 0 ? 1 : (Int(message.length) + Int(message.segment) - 1) / Int(message.segment)
    }

    private func waitForRoom() -> Bool {
        var descriptors = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return poll(&descriptors, 1, Self.fullBufferWaitMilliseconds) > 0
    }
}
