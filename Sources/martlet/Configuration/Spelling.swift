/// Finds what may have been meant by an unknown name.
enum Spelling {
    /// The candidate that differs from `name` by the fewest mistakes, the first among equals; nil if none is near.
    ///
    /// Upper and lower case, `-` and `_` count as the same. Names of several parts (`http.port`) may also lack their first parts or
    /// be in the wrong section: the last part then decides.
    static func nearest(to name: String, among candidates: [String]) -> String? {
        let scores = candidates.map { score(plain(name), plain($0)) }
        guard let least = scores.min(), least < Int.max, let index = scores.firstIndex(of: least) else { return nil }
        return candidates[index]
    }

    /// How far apart two names are; the greatest number if they are unrelated.
    private static func score(_ name: [Character], _ candidate: [Character]) -> Int {
        let asked = lastPart(name), last = lastPart(candidate)
        let whole = mistakes(name, candidate), part = mistakes(asked, last)
        // A long common section does not make settings similar: the last parts must be similar, too.
        if part <= allowance(last) {
            if whole <= allowance(candidate) { return whole }
            if candidate.contains(".") { return part + 2 }
        }
        // A beginning ("cert") says least.
        return asked.count >= 3 && last.starts(with: asked) ? allowanceOfAll + 2 : Int.max
    }

    private static let allowanceOfAll = 3

    /// One mistake per four letters, at most three: with more it is another word.
    private static func allowance(_ word: [Character]) -> Int { min(max(word.count / 4, 1), allowanceOfAll) }

    private static func plain(_ text: String) -> [Character] { text.lowercased().map { $0 == "-" ? "_" : $0 } }

    private static func lastPart(_ name: [Character]) -> [Character] {
        name.lastIndex(of: ".").map { Array(name[($0 + 1)...]) } ?? name
    }

    /// Letters to insert, remove, replace or swap with their neighbour: the optimal string alignment distance.
    static func mistakes(_ a: [Character], _ b: [Character]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...b.count)
        for i in a.indices {
            var row = [i + 1] + Array(repeating: 0, count: b.count)
            for j in b.indices {
                row[j + 1] = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
                    row[j + 1] = min(row[j + 1], beforeLast[j - 1] + 1)
                }
            }
            (beforeLast, last) = (last, row)
        }
        return last[b.count]
    }

    /// "; did you mean 'http.port'?", or `otherwise` if nothing is near.
    static func hint(for name: String, among candidates: [String], otherwise: String = "") -> String {
        nearest(to: name, among: candidates).map { "; did you mean '\($0)'?" } ?? otherwise
    }
}
