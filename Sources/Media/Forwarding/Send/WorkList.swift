/// A growing array of plain values that keeps its memory: the working lists of a turn. Inlinable, because an engine that called it as a
/// generic would query the runtime for its element's type each time.
public struct WorkList<Element>: ~Copyable {
    @usableFromInline var storage: UnsafeMutablePointer<Element>
    @usableFromInline var capacity: Int
    @usableFromInline var used = 0
    /// Number of elements.
    @inlinable @inline(__always) public var count: Int { used }

    /// A list that holds `capacity` elements before it grows.
    public init(capacity: Int) {
        precondition(_isPOD(Element.self), "a work list holds plain values")
        self.capacity = max(1, capacity)
        storage = .allocate(capacity: self.capacity)
    }

    deinit { storage.deallocate() }

    /// Appends an element; the list grows if necessary.
    @inlinable @inline(__always) public mutating func append(_ element: Element) {
        if used == capacity { grow() }
        (storage + used).initialize(to: element)
        used &+= 1
    }

    @inlinable @inline(__always) public subscript(index: Int) -> Element {
        get { storage[index] }
        nonmutating set { storage[index] = newValue }
    }

    /// The elements, valid until the next `append`.
    @inlinable @inline(__always) public var elements: UnsafeMutableBufferPointer<Element> {
        .init(start: storage, count: used)
    }

    /// Empties the list and keeps its memory.
    @inlinable @inline(__always) public mutating func removeAll() { used = 0 }

    @usableFromInline mutating func grow() {
        let grown = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        grown.moveInitialize(from: storage, count: count)
        storage.deallocate()
        storage = grown
        capacity *= 2
    }
}
