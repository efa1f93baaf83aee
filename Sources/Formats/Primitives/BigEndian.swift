// Network byte order. Callers check bounds once for a whole header and then use these without further checks; spans still trap on a wrong offset, so a mistake
// is a crash in a test, never a read outside the packet.

extension RawSpan {
    /// The unsigned 16-bit number at `offset`, in network order.
    @inlinable public func readUInt16(_ offset: Int) -> UInt16 {
        UInt16(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
    }

    /// The unsigned 24-bit number at `offset`, in network order.
    @inlinable public func readUInt24(_ offset: Int) -> UInt32 {
        UInt32(readUInt16(offset)) << 8 | UInt32(readUInt8(offset + 2))
    }

    /// The unsigned 32-bit number at `offset`, in network order.
    @inlinable public func readUInt32(_ offset: Int) -> UInt32 {
        UInt32(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// The unsigned 64-bit number at `offset`, in network order.
    @inlinable public func readUInt64(_ offset: Int) -> UInt64 {
        UInt64(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// The byte at `offset`.
    @inlinable public func readUInt8(_ offset: Int) -> UInt8 { unsafeLoad(fromByteOffset: offset, as: UInt8.self) }
}

extension UnsafeMutableRawBufferPointer {
    /// Writes a byte at `offset`.
    @inlinable public func write(_ value: UInt8, at offset: Int) { self[offset] = value }

    /// Writes a 16-bit number at `offset` in network order.
    @inlinable public func write(_ value: UInt16, at offset: Int) {
        storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt16.self)
    }

    /// Writes a 32-bit number at `offset` in network order.
    @inlinable public func write(_ value: UInt32, at offset: Int) {
        storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt32.self)
    }

    /// Writes a 64-bit number at `offset` in network order.
    @inlinable public func write(_ value: UInt64, at offset: Int) {
        storeBytes(of: value.bigEndian, toByteOffset: offset, as: UInt64.self)
    }
}
