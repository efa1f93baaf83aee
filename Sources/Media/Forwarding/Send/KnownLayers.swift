/// The simulcast layers that the last bandwidth decision knew. No other layer is started before the next decision, which is due soon after one was found.
struct KnownLayers {
    /// Bitmap of the layers; nil: all, whichever they are.
    private var known: UInt8?
    /// Others that were being sent at the last check.
    private var others: UInt8 = 0
    private var hasFound = false

    init() {}

    /// Another decision, which knew these layers; nil: all.
    mutating func decided(_ layers: UInt8?) {
        known = layers
        others = 0
    }

    /// Those of the layers `sent` that may be forwarded.
    mutating func allowed(of sent: UInt8) -> UInt8 {
        guard let known else { return sent }
        let unknown = sent & ~known
        if unknown & ~others != 0 { hasFound = true }
        others = unknown
        // If no known layer is sent any more, any layer is allowed.
        return sent & known != 0 ? sent & known : sent
    }

    /// Whether a layer is being sent that the decision did not know, reported once.
    @inline(__always)
    mutating func consumeFound() -> Bool {
        guard hasFound else { return false }
        hasFound = false
        return true
    }
}
