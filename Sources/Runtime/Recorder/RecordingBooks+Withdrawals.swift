import Logging
import Primitives

// What deleted recordings have left in a storage.

extension RecordingBooks {
    /// Has the storage keep nothing of what was deleted here.
    func withdraw(_ item: UploadWithdrawals.Item) {
        if !withdrawals.add(item) { staysInStorage(item, "too much was deleted at once") }
    }

    private func staysInStorage(_ item: UploadWithdrawals.Item, _ words: String) {
        logger.warning(
            "what a deleted recording had uploaded stays in the storage; remove it there",
            ["key": .text(item.key), "reason": .text(words)])
    }

    /// What a deleted recording has left in the storage was removed there.
    func withdrew(_ item: UploadWithdrawals.Item, at now: MonotonicTime) {
        if !withdrawals.removed(item, at: now) { staysInStorage(item, "too much was deleted at once") }
    }

    /// What a deleted recording has left in the storage could not be removed there.
    func withdrawalFailed(_ item: UploadWithdrawals.Item, _ words: String, at now: MonotonicTime) {
        if !withdrawals.retry(item, at: now) { staysInStorage(item, words) }
    }
}
