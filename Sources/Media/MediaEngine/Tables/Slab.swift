/// Elements in contiguous storage, identified by small numbers that are constant for an element's lifetime.
///
/// Pointers are valid until the next insertion.
struct Slab<Element: ~Copyable>: ~Copyable {
    private(set) var base: UnsafeMutablePointer<Element>
    private var capacity: Int
    private var occupied: [Bool] = []
    private var free: [Int] = []
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = max(1, capacity)
        base = .allocate(capacity: self.capacity)
    }

    deinit {
        for index in occupied.indices where occupied[index] { (base + index).deinitialize(count: 1) }
        base.deallocate()
    }

    /// One more than the highest number in use.
    var end: Int { occupied.count }

    func contains(_ index: Int) -> Bool { index >= 0 && index < occupied.count && occupied[index] }

    /// The element with this number, which must exist.
    @inline(__always) subscript(index: Int) -> UnsafeMutablePointer<Element> { base + index }

    /// The number of an element.
    @inline(__always) func index(of element: UnsafeMutablePointer<Element>) -> Int { element - base }

    /// Inserts `element` and returns its number. Freed numbers are used first.
    mutating func insert(_ element: consuming Element) -> Int {
        let index: Int
        if let reused = free.popLast() {
            index = reused
        } else {
            index = occupied.count
            if index == capacity { grow() }
            occupied.append(false)
        }
        (base + index).initialize(to: element)
        occupied[index] = true
        count += 1
        return index
    }

    /// Destroys the element with this number.
    mutating func remove(_ index: Int) {
        precondition(contains(index), "removing what is not there")
        (base + index).deinitialize(count: 1)
        occupied[index] = false
        free.append(index)
        count -= 1
    }

    private mutating func grow() {
        let grown = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        for index in occupied.indices where occupied[index] {
            (grown + index).moveInitialize(from: base + index, count: 1)
        }
        base.deallocate()
        base = grown
        capacity *= 2
    }
}
