import EdgeSupport
import HTTPServing

/// Part of a list.
struct ListPage<Element> {
    var shown: [Element]
    /// What the next page's `after` is; nil: these were the last.
    var next: String?

    /// The elements behind the query's `after`, at most `limit` of them. `all` are in the order of their keys, which no two share.
    init(of all: [Element], _ request: HTTPRequest, key: (Element) -> String) throws(Problem) {
        let limit = try request.number("limit", in: 1...1_000) ?? 1_000
        let rest: [Element]
        if let after = request.query["after"] { rest = all.filter { key($0) > after } } else { rest = all }
        shown = Array(rest.prefix(limit))
        next = rest.count > limit ? shown.last.map(key) : nil
    }
}
