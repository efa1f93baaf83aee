internal import CProcessor

/// Memory that will be needed soon.
///
/// Between two turns other threads and the kernel use the caches, so a receiver's state is cold when its packet is written: a dozen
/// lines, each a tenth of a microsecond away. Requested one receiver ahead, they arrive while the previous one is processed.
public enum Prefetch {
    /// Prefetches `length` bytes from `start` on. The address may be anything; it is not read.
    @inline(__always) public static func lines(_ start: UnsafeRawPointer, _ length: Int) {
        cprocessor_prefetch(start, length)
    }
}
