import Primitives

/// What a job at work depends on, as it is at a moment.
struct JobCircumstances: Sendable, Hashable {
    var isCancelled = false
    /// The server ends.
    var isStopping = false
    /// Its recording is no more.
    var isDeleted = false
    /// For how long it has been at work, and may be.
    var age = TimeInterval.zero
    var longest: TimeInterval
    /// The disk has more left than recordings must leave free.
    var hasRoom = true

    /// Why the work is to be left; nil: it goes on. A job that somebody cancels while the server ends does not begin again.
    var fault: JobFault? {
        if isCancelled { return .cancelled }
        if isStopping { return .stopped }
        if isDeleted { return .deleted }
        if age > longest { return .timeLimit }
        return hasRoom ? nil : .diskFull
    }
}
