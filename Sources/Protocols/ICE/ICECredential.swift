/// User name fragment and password of one side, at a fixed address in memory.
///
/// libnice's agent and messages keep the pointer to a password, so it must stay where it is while they are used.
public final class ICECredential {
    /// The user name fragment's bytes.
    public let ufrag: [UInt8]
    let password: UnsafeMutableBufferPointer<UInt8>

    /// Copies both.
    public init(ufrag: String, password: String) {
        self.ufrag = Array(ufrag.utf8)
        self.password = .allocate(capacity: max(1, password.utf8.count))
        passwordLength = password.utf8.count
        _ = self.password.initialize(from: password.utf8)
    }

    let passwordLength: Int

    deinit {
        // Secrets must not remain in freed memory.
        password.update(repeating: 0)
        password.deallocate()
    }

    /// Whether `datagram[range]` is this user name fragment.
    func matches(_ datagram: UnsafeRawBufferPointer, _ range: Range<Int>) -> Bool {
        guard range.count == ufrag.count else { return false }
        for index in 0..<ufrag.count where datagram[range.lowerBound + index] != ufrag[index] { return false }
        return true
    }
}
