import EdgeSupport
import HTTPServing

/// Part of a list.
struct ListPage<Element> {
    var shown: [Element]
    /// The `after` of the next page; nil: this was the last page.
    var next: String?

    /// The elements after the query's `after`, at most `limit` of them, in the order of their unique keys.
    init(of all: [Element], _ request: HTTPRequest, key: (Element) -> String) throws(Problem) {
        let limit = try request.number("limit", in: 1...1_000) ?? 1_000
        let after = request.query["after"] ?? ""
        let keyed = all.map { (key: key($0), element: $0) }
        let rest = keyed.filter { $0.key > after }.sorted { $0.key < $1.key }.prefix(limit + 1)
        shown = rest.prefix(limit).map(\.element)
        next = rest.count > limit ? rest.dropLast().last?.key : nil
    }

    /// The response with the page's elements as the member `name`.
    func response(_ name: String, _ model: (Element) -> some Encodable) -> HTTPResponse {
        .json(ListPageModel(name: name, elements: shown.map(model), next: next))
    }
}

extension String {
    /// A moment, in milliseconds since 1970, with so many digits that the texts sort in the order of time.
    init(sortableMoment milliseconds: Int64) {
        let digits = String(milliseconds)
        self = String(repeating: "0", count: Swift.max(0, 15 - digits.count)) + digits
    }
}

extension String {
    /// The same, with texts of later moments first.
    init(newestFirst milliseconds: Int64) { self.init(sortableMoment: 999_999_999_999_999 - milliseconds) }
}

/// A page as JSON shows it.
private struct ListPageModel<Element: Encodable>: Encodable {
    let name: String
    let elements: [Element]
    /// The `after` of the next request; absent on the last page.
    let next: String?

    private struct Key: CodingKey {
        let stringValue: String
        let intValue: Int? = nil

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: Key.self)
        try fields.encode(elements, forKey: Key(stringValue: name))
        try fields.encodeIfPresent(next, forKey: Key(stringValue: "next"))
    }
}
