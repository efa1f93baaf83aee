import ObjectStorage
import Primitives
import Synchronization

/// The unfinished uploads of deleted recordings that a storage may still have: parts, which cost as long as they are kept, and objects that were completed
/// meanwhile. The uploader removes them from the storage. Those that are left when the process ends are up to the bucket's lifecycle rules.
final class UploadWithdrawals: Sendable {
    /// One file that was being uploaded.
    struct Item: Sendable {
        /// Its name in the storage.
        var key: String
        /// The progress of its upload in parts, if that had begun.
        var progress: ObjectUpload.Progress?
        /// Whether the storage may have the complete object.
        var mayBeThere: Bool
        /// Whether a request for it was in progress: the storage may carry that out after the removal.
        private(set) var wasUnderWay: Bool
        fileprivate var tries = 0
        fileprivate var due = MonotonicTime.zero

        init(key: String, progress: ObjectUpload.Progress?, mayBeThere: Bool, wasUnderWay: Bool = false) {
            self.key = key
            self.progress = progress
            self.mayBeThere = mayBeThere
            self.wasUnderWay = wasUnderWay
        }

        /// The same, to be removed again.
        fileprivate func again(at moment: MonotonicTime) -> Item {
            var item = Item(key: key, progress: progress, mayBeThere: mayBeThere)
            item.due = moment
            return item
        }
    }

    /// If the storage is unreachable while more is deleted, it keeps the rest.
    private static let mostItems = 1_000
    /// Outages of the storage of less than an hour are waited out; a storage that permits no deletion is not asked forever.
    private static let mostTries = 10
    private static let pause = TimeSpan.seconds(300)

    private let items = Mutex<[Item]>([])

    /// False: there are too many.
    func add(_ item: Item) -> Bool {
        items.withLock { items in
            guard items.count < Self.mostItems else { return false }
            items.append(item)
            return true
        }
    }

    /// Removes and returns the entries whose time has come.
    func removeDue(at now: MonotonicTime) -> [Item] {
        items.withLock { items in
            let due = items.filter { $0.due <= now }
            items.removeAll { $0.due <= now }
            return due
        }
    }

    /// Puts back an entry that could not be removed; false: that has been tried often enough.
    func retry(_ item: Item, at now: MonotonicTime) -> Bool {
        var item = item
        item.tries += 1
        item.due = now + Self.pause
        return item.tries < Self.mostTries && add(item)
    }

    /// An entry was removed; if a request was in progress meanwhile, it is to be removed again. False: there are too many.
    func removed(_ item: Item, at now: MonotonicTime) -> Bool {
        !item.wasUnderWay || add(item.again(at: now + Self.pause))
    }

    /// When there is something to remove again.
    var nextDue: MonotonicTime? { items.withLock { $0.map(\.due).min() } }
}

extension ObjectUpload.Progress {
    /// The size of a state with 9,000 parts.
    private static let longestState: Int64 = 4 << 20

    /// The state at `path`; nil if there is none.
    init?(at path: String) {
        guard let state = RecordingFile(path), state.length <= Self.longestState else { return nil }
        self.init(text: String(decoding: state.read(Int(state.length), at: 0), as: UTF8.self))
    }
}
