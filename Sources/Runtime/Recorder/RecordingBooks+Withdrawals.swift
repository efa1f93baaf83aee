import Logging
import Primitives

// The uploads of deleted recordings that a storage may still have.

extension RecordingBooks {
    /// Requests that the storage keep nothing of files that were deleted here.
    func withdraw(_ item: UploadWithdrawals.Item) {
        if !withdrawals.add(item) { staysInStorage(item, "too much was deleted at once") }
    }

    private func staysInStorage(_ item: UploadWithdrawals.Item, _ words: String) {
        logger.warning(
            "what a deleted recording had uploaded stays in the storage; remove it there",
            ["key": .text(item.key), "reason": .text(words)])
    }

    /// The remains of a deleted recording were removed from the storage.
    func withdrew(_ item: UploadWithdrawals.Item, at now: MonotonicTime) {
        if !withdrawals.removed(item, at: now) { staysInStorage(item, "too much was deleted at once") }
    }

    /// The remains of a deleted recording could not be removed from the storage.
    func withdrawalFailed(_ item: UploadWithdrawals.Item, _ words: String, at now: MonotonicTime) {
        if !withdrawals.retry(item, at: now) { staysInStorage(item, words) }
    }
}
