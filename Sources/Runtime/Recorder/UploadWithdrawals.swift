import ObjectStorage
import Primitives
import Synchronization

/// What deleted recordings have in a storage that was not finished before: parts of uploads, which cost for as long as they are kept, and objects that were finished
/// meanwhile. The uploader removes it there. What is left when the process ends is the bucket's life cycle's.
final class UploadWithdrawals: Sendable {
    /// One file that was on its way.
    struct Item: Sendable {
        /// What it is called in the storage.
        var key: String
        /// How far its upload in parts had come, where it had begun.
        var progress: ObjectUpload.Progress?
        /// Whether the storage may have it as a whole.
        var mayBeThere: Bool
        /// Whether a request about it was under way: the storage may carry that out after it has removed what there was.
        private(set) var wasUnderWay: Bool
        fileprivate var tries = 0
        fileprivate var due = MonotonicTime.zero

        init(key: String, progress: ObjectUpload.Progress?, mayBeThere: Bool, wasUnderWay: Bool = false) {
            self.key = key
            self.progress = progress
            self.mayBeThere = mayBeThere
            self.wasUnderWay = wasUnderWay
        }

        /// The same, to be removed once more.
        fileprivate func again(at moment: MonotonicTime) -> Item {
            var item = Item(key: key, progress: progress, mayBeThere: mayBeThere)
            item.due = moment
            return item
        }
    }

    /// A storage that is away while more is deleted keeps the rest.
    private static let mostItems = 1_000
    /// A storage that is away for less than an hour is waited for; one that permits no deletion is not asked for ever.
    private static let mostTries = 10
    private static let pause = TimeInterval.seconds(300)

    private let items = Mutex<[Item]>([])

    /// False: there are too many.
    func add(_ item: Item) -> Bool {
        items.withLock { items in
            guard items.count < Self.mostItems else { return false }
            items.append(item)
            return true
        }
    }

    /// What is to be removed now.
    func takeDue(at now: MonotonicTime) -> [Item] {
        items.withLock { items in
            let due = items.filter { $0.due <= now }
            items.removeAll { $0.due <= now }
            return due
        }
    }

    /// Puts back what could not be removed; false: that has been tried often enough.
    func retry(_ item: Item, at now: MonotonicTime) -> Bool {
        var item = item
        item.tries += 1
        item.due = now + Self.pause
        return item.tries < Self.mostTries && add(item)
    }

    /// Takes note that something was removed: what was under way meanwhile is removed once more. False: there are too many.
    func removed(_ item: Item, at now: MonotonicTime) -> Bool {
        !item.wasUnderWay || add(item.again(at: now + Self.pause))
    }

    /// When there is something to remove again.
    var nextDue: MonotonicTime? { items.withLock { $0.map(\.due).min() } }
}

extension ObjectUpload.Progress {
    /// A state of 9,000 parts.
    private static let longestState: Int64 = 4 << 20

    /// What is kept at `path`; nil where nothing is.
    init?(at path: String) {
        guard let state = RecordingFile(path), state.length <= Self.longestState else { return nil }
        self.init(text: String(decoding: state.read(Int(state.length), at: 0), as: UTF8.self))
    }
}
