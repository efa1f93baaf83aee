/// The numbers of the last 64 records that arrived (RFC 6347 section 4.1.2.6): none is accepted twice.
struct ReplayWindow {
    private var highest: UInt64 = 0
    /// Bit 0 is `highest`.
    private var seen: UInt64 = 0

    /// Whether `number` is neither known nor too old. Counted by `accept`, once the record is authentic.
    func isNew(_ number: UInt64) -> Bool {
        if seen == 0 || number > highest { return true }
        let age = highest - number
        return age < 64 && seen & (1 << age) == 0
    }

    /// An authentic record with this number arrived.
    mutating func accept(_ number: UInt64) {
        if seen == 0 || number > highest {
            let step = seen == 0 ? 64 : number - highest
            seen = step < 64 ? seen << step | 1 : 1
            highest = number
        } else {
            seen |= 1 << (highest - number)
        }
    }
}
