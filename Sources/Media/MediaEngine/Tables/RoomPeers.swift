/// The peers of one room by their indices, in ascending order: a walk in parts continues after the last peer, whichever peers were added or removed meanwhile.
struct RoomPeers {
    private var indices: [Int] = []

    var isEmpty: Bool { indices.isEmpty }

    mutating func insert(_ index: Int) { indices.insert(index, at: position(of: index)) }

    mutating func remove(_ index: Int) {
        let position = position(of: index)
        guard position < indices.count, indices[position] == index else { return }
        indices.remove(at: position)
    }

    /// Those from the index `start` on.
    func from(_ start: Int) -> ArraySlice<Int> { indices[position(of: start)...] }

    /// How many have a lower index.
    private func position(of index: Int) -> Int {
        var low = 0, high = indices.count
        while low < high {
            let middle = (low + high) / 2
            if indices[middle] < index { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
