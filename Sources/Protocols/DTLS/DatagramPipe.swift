internal import COpenSSL

/// Takes the place of a socket for OpenSSL: one write is one datagram, one read consumes one datagram.
///
/// OpenSSL's memory BIO would join datagrams, which DTLS forbids (RFC 6347 section 4.1.1).
final class DatagramPipe {
    /// The datagram to be read; lent for the duration of one call.
    var inbound: UnsafeRawBufferPointer?
    /// Datagrams written by OpenSSL, contiguous, and where each ends.
    var outbound: [UInt8] = []
    var ends: [Int] = []
    /// OpenSSL's retransmission timer: its address, whether it runs, and how often it was started.
    var timer: UnsafeMutableRawPointer?
    var isTimerArmed = false
    var timerStarts = 0
    let mtu: Int

    init(mtu: Int) { self.mtu = mtu }

    /// Forgets the association that used it.
    func reset() {
        inbound = nil
        outbound.removeAll()
        ends.removeAll()
        timer = nil
        isTimerArmed = false
    }

    func read(into buffer: UnsafeMutableRawPointer, _ capacity: Int) -> Int {
        guard let datagram = inbound, let base = datagram.baseAddress else { return -1 }
        inbound = nil
        let length = min(capacity, datagram.count)
        buffer.copyMemory(from: base, byteCount: length)
        return length
    }

    func write(_ buffer: UnsafeRawBufferPointer) {
        outbound.append(contentsOf: buffer)
        ends.append(outbound.count)
    }

    func control(_ command: Int32, _ pointer: UnsafeMutableRawPointer?) -> Int {
        switch command {
        case BIO_CTRL_FLUSH: return 1
        case BIO_CTRL_DGRAM_QUERY_MTU, BIO_CTRL_DGRAM_GET_FALLBACK_MTU: return mtu
        // IPv6 and UDP headers, so that no datagram is fragmented.
        case BIO_CTRL_DGRAM_GET_MTU_OVERHEAD: return 48
        case BIO_CTRL_DGRAM_SET_NEXT_TIMEOUT:
            guard let pointer else { return 0 }
            timer = pointer
            isTimerArmed = copenssl_hold_timer(pointer) == 1
            if isTimerArmed { timerStarts += 1 }
            return 1
        default: return 0
        }
    }
}

/// The BIO_METHOD over a `DatagramPipe`; one per context, which must outlive the associations.
final class DatagramMethod {
    let method: OpaquePointer

    init?() {
        guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "datagram pipe") else { return nil }
        self.method = method
        BIO_meth_set_create(method) { bio in
            BIO_set_init(bio, 1)
            return 1
        }
        BIO_meth_set_read(method) { bio, buffer, capacity in
            BIO_clear_flags(bio, COPENSSL_RETRY_FLAGS)
            guard let pipe = DatagramMethod.pipe(of: bio), let buffer else { return -1 }
            let length = pipe.read(into: buffer, Int(capacity))
            if length < 0 { BIO_set_flags(bio, COPENSSL_RETRY_READ) }
            return Int32(length)
        }
        BIO_meth_set_write(method) { bio, buffer, length in
            BIO_clear_flags(bio, COPENSSL_RETRY_FLAGS)
            guard let pipe = DatagramMethod.pipe(of: bio), let buffer else { return -1 }
            pipe.write(UnsafeRawBufferPointer(start: buffer, count: Int(length)))
            return length
        }
        BIO_meth_set_ctrl(method) { bio, command, _, pointer in
            DatagramMethod.pipe(of: bio)?.control(command, pointer) ?? 0
        }
    }

    deinit { BIO_meth_free(method) }

    private static func pipe(of bio: OpaquePointer?) -> DatagramPipe? {
        guard let data = BIO_get_data(bio) else { return nil }
        return Unmanaged<DatagramPipe>.fromOpaque(data).takeUnretainedValue()
    }

    /// A BIO that reads from and writes to `pipe`, which must outlive it.
    func bio(over pipe: DatagramPipe) -> OpaquePointer? {
        guard let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, Unmanaged.passUnretained(pipe).toOpaque())
        return bio
    }
}
