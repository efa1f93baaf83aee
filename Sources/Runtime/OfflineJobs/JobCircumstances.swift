import Primitives

/// The conditions that decide whether a running job continues.
struct JobCircumstances: Sendable, Hashable {
    var isCancelled = false
    /// The server ends.
    var isStopping = false
    /// Its recording no longer exists.
    var isDeleted = false
    /// How long it has been running, and the limit.
    var age = TimeSpan.zero
    var longest: TimeSpan
    /// Whether the disk has more free space than recordings must leave free.
    var hasRoom = true

    /// Why the work must end; nil: it continues. A job that is cancelled while the server ends does not begin again.
    var fault: JobFault? {
        if isCancelled { return .cancelled }
        if isStopping { return .stopped }
        if isDeleted { return .deleted }
        if age > longest { return .timeLimit }
        return hasRoom ? nil : .diskFull
    }
}
