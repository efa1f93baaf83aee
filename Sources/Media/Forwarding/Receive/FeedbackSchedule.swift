internal import Primitives

/// The moment at which an uplink has something to send; its tracks bring it forward.
final class FeedbackSchedule {
    private let storage: UnsafeMutablePointer<MonotonicTime>

    init() {
        storage = .allocate(capacity: 1)
        storage.initialize(to: .distantFuture)
    }

    deinit { storage.deallocate() }

    var deadline: MonotonicTime { storage.pointee }

    @inline(__always) func wake(at moment: MonotonicTime) {
        if moment < storage.pointee { storage.pointee = moment }
    }

    func set(_ moment: MonotonicTime) { storage.pointee = moment }
}
