import Primitives

/// The number of a worker at the beginning of every user name fragment that belongs to it.
///
/// On a shared TCP port, the first check of a connection shows which worker it is for, without a table that all workers would have to keep up to date.
/// Not a secret, and not trusted: the worker itself decides whether it knows the fragment.
public enum WorkerMark {
    /// Two characters that ICE permits (RFC 8839 section 5.4), by 62 and by 1: more workers than a process can have.
    public static let length = 2
    private static let alphabet = RandomText.alphabet

    /// The mark of worker `index`.
    public static func text(worker index: Int) -> String {
        let digits = [alphabet[index / alphabet.count % alphabet.count], alphabet[index % alphabet.count]]
        return String(decoding: digits, as: UTF8.self)
    }

    /// The worker whose mark is at the beginning of `ufrag`; nil where there is none.
    public static func worker(of ufrag: UnsafeRawBufferPointer) -> Int? {
        guard ufrag.count >= length, let high = alphabet.firstIndex(of: ufrag[0]),
            let low = alphabet.firstIndex(of: ufrag[1])
        else { return nil }
        return high * alphabet.count + low
    }
}
