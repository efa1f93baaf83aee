import CZlib

/// Inflates what a client has compressed (RFC 1952), through zlib.
enum Gzip {
    /// nil if the bytes are no complete gzip member, or inflate to more than `limit` bytes.
    static func inflate(_ bytes: [UInt8], atMost limit: Int) -> [UInt8]? {
        var stream = z_stream()
        // 15: the largest window; 16 more: a gzip header and nothing else.
        guard
            inflateInit2_(&stream, 15 + 16, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size)) == Z_OK
        else { return nil }
        defer { inflateEnd(&stream) }
        var input = bytes
        // One byte more than is allowed, to tell an output that just fits from one that does not.
        return input.withUnsafeMutableBufferPointer { input in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(clamping: input.count)
            var isComplete = false
            let output = [UInt8](unsafeUninitializedCapacity: limit + 1) { buffer, count in
                stream.next_out = buffer.baseAddress
                stream.avail_out = UInt32(clamping: buffer.count)
                isComplete = CZlib.inflate(&stream, Z_FINISH) == Z_STREAM_END
                count = buffer.count - Int(stream.avail_out)
            }
            return isComplete && output.count <= limit ? output : nil
        }
    }
}
