/// The simulcast layers that the last bandwidth decision knew. No other layer is started before the next decision, which is due soon after a new layer was
/// found.
struct KnownLayers {
    /// Bitmap of the layers; nil: all, whichever they are.
    private var known: UInt8?
    /// All that were being sent at the last check, and those of them that the decision did not know.
    private var former: UInt8 = 0
    private var others: UInt8 = 0
    private var hasFound = false

    init() {}

    /// Another decision was made, which knew these layers; nil: all.
    mutating func decided(_ layers: UInt8?) {
        known = layers
        others = 0
    }

    /// Those of the layers `sent` that may be forwarded.
    mutating func allowed(of sent: UInt8) -> UInt8 {
        guard let known else { return sent }
        let unknown = sent & ~known
        // A decision that changes nothing sets no bound, so a layer may stay unknown; if another layer stops, the unknown one is needed.
        if unknown & ~others != 0 || unknown != 0 && former & ~sent != 0 { hasFound = true }
        (former, others) = (sent, unknown)
        // If no known layer is sent any more, any layer is allowed.
        return sent & known != 0 ? sent & known : sent
    }

    /// Whether a layer is being sent that the decision did not know; reported once, and once more if another layer stops.
    @inline(__always)
    mutating func consumeFound() -> Bool {
        guard hasFound else { return false }
        hasFound = false
        return true
    }
}
