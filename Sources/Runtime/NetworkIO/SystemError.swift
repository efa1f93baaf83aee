import Glibc

/// A system call that failed.
public struct SystemError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The call, for example "bind".
    public let call: String
    /// Its errno.
    public let code: Int32

    /// The failure of `call` with an error number.
    public init(_ call: String, code: Int32) {
        self.call = call
        self.code = code
    }

    /// The failure of `call` with the thread's errno.
    init(_ call: String) { self.init(call, code: errno) }

    /// "bind: Address already in use"
    public var description: String { "\(call): \(String(cString: strerror(code)))" }
}
