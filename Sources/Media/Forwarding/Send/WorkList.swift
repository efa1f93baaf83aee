/// A growing array of plain values that keeps its memory: the working lists of a turn.
public struct WorkList<Element>: ~Copyable {
    private var storage: UnsafeMutablePointer<Element>
    private var capacity: Int
    public private(set) var count = 0

    /// A list that holds `capacity` elements before it grows.
    public init(capacity: Int) {
        precondition(_isPOD(Element.self), "a work list holds plain values")
        self.capacity = max(1, capacity)
        storage = .allocate(capacity: self.capacity)
    }

    deinit { storage.deallocate() }

    /// Adds an element; the list grows where it must.
    @inline(__always) public mutating func append(_ element: Element) {
        if count == capacity { grow() }
        (storage + count).initialize(to: element)
        count &+= 1
    }

    @inline(__always) public subscript(index: Int) -> Element {
        get { storage[index] }
        nonmutating set { storage[index] = newValue }
    }

    /// The elements, valid until the next `append`.
    @inline(__always) public var elements: UnsafeMutableBufferPointer<Element> { .init(start: storage, count: count) }

    /// Empties the list and keeps its memory.
    @inline(__always) public mutating func removeAll() { count = 0 }

    private mutating func grow() {
        let grown = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        grown.moveInitialize(from: storage, count: count)
        storage.deallocate()
        storage = grown
        capacity *= 2
    }
}
