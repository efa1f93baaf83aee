import Glibc

/// `close`, under a name that no member hides.
func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }

/// Blocks the calling thread for a while.
func sleepMilliseconds(_ count: UInt32) { _ = usleep(count * 1_000) }
