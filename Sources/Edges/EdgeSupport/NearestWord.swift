/// Finds the word that somebody probably meant.
public enum NearestWord {
    /// The one of `words` into which `word` can be changed with the fewest edits (a letter inserted, omitted or replaced, or two
    /// swapped), if these are at most a third of its length; the first of equals.
    public static func of(_ words: some Sequence<String>, to word: String) -> String? {
        // Words of settings and members are short; a longer one is no typing error, and the size of the table below is its square.
        guard word.count <= 64 else { return nil }
        var best: (word: String, edits: Int)?
        for candidate in words {
            let edits = edits(Array(word.lowercased()), Array(candidate.lowercased()))
            guard edits <= max(1, word.count / 3), edits < best?.edits ?? .max else { continue }
            best = (candidate, edits)
        }
        return best?.word
    }

    /// The optimal string alignment distance.
    private static func edits(_ a: [Character], _ b: [Character]) -> Int {
        var rows = [Array(0...b.count)]
        for i in a.indices {
            var row = [i + 1]
            for j in b.indices {
                var least = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { least = min(least, rows[i - 1][j - 1] + 1) }
                row.append(least)
            }
            rows.append(row)
        }
        return rows[a.count][b.count]
    }
}
