import CYAML

/// A YAML file as a tree of texts, lists and maps, each with its line for errors.
struct YAMLDocument {
    /// One value of the file.
    struct Node: Hashable {
        var content: Content
        /// Counted from 1.
        var line: Int
    }

    enum Content: Hashable {
        /// Nothing after a name, or `null`.
        case none
        case text(String)
        case list([Node])
        case map([Member])
    }

    /// A name with its value.
    struct Member: Hashable {
        var name: String
        /// The line of the name.
        var line: Int
        var value: Node
    }

    /// Why a text is not a configuration file.
    struct Failure: Error, Hashable {
        var line: Int
        var problem: String
    }

    /// The members of the file's map.
    let members: [Member]

    /// The largest file that is read; a configuration is a few hundred bytes.
    static let maximumBytes = 1 << 20

    /// Reads a text of one document whose root is a map.
    init(parsing text: String) throws(Failure) {
        guard text.utf8.count <= Self.maximumBytes else { throw Failure(line: 1, problem: "the file is too large") }
        var parser = yaml_parser_t()
        guard yaml_parser_initialize(&parser) == 1 else { throw Failure(line: 1, problem: "out of memory") }
        defer { yaml_parser_delete(&parser) }
        let bytes = Array(text.utf8)
        let result: Result<[Member], Failure> = bytes.withUnsafeBufferPointer { buffer in
            yaml_parser_set_input_string(&parser, buffer.baseAddress, buffer.count)
            var reader = YAMLReader(parser: &parser, bytes: buffer)
            do throws(Failure) {
                return .success(try reader.document())
            } catch {
                return .failure(error)
            }
        }
        members = try result.get()
    }
}

/// libyaml's events, read into a tree.
private struct YAMLReader {
    private typealias Node = YAMLDocument.Node
    private typealias Failure = YAMLDocument.Failure

    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let bytes: UnsafeBufferPointer<UInt8>

    /// How deep values may nest; the table of settings needs four.
    private static let maximumDepth = 8

    private enum Event {
        case scalar(String, isNull: Bool)
        case documentStart, mapStart, mapEnd, listStart, listEnd, end, other
    }

    init(parser: UnsafeMutablePointer<yaml_parser_t>, bytes: UnsafeBufferPointer<UInt8>) {
        self.parser = parser
        self.bytes = bytes
    }

    mutating func document() throws(YAMLDocument.Failure) -> [YAMLDocument.Member] {
        var root: Node?
        while true {
            let (event, line) = try next()
            switch event {
            case .end: break
            case .documentStart where root != nil:
                throw Failure(
                    line: line,
                    problem: "a second document begins here, but a configuration has one; remove the line '---'")
            case .scalar, .mapStart, .listStart:
                root = try node(event, line, depth: 0)
                continue
            default: continue
            }
            break
        }
        switch root?.content {
        case .map(let members): return members
        case nil, .some(.none): return []
        case .text, .list:
            throw Failure(
                line: root?.line ?? 1, problem: "the file must be a map of settings, such as 'http: {port: 7880}'")
        }
    }

    private mutating func node(_ event: Event, _ line: Int, depth: Int) throws(Failure) -> Node {
        guard depth < Self.maximumDepth else { throw Failure(line: line, problem: "nested too deeply") }
        switch event {
        case .scalar(let text, let isNull): return Node(content: isNull ? .none : .text(text), line: line)
        case .listStart: return Node(content: .list(try list(depth: depth)), line: line)
        case .mapStart: return Node(content: .map(try map(depth: depth)), line: line)
        default: throw Failure(line: line, problem: "expected a value")
        }
    }

    private mutating func map(depth: Int) throws(Failure) -> [YAMLDocument.Member] {
        var members: [YAMLDocument.Member] = []
        var lines: [String: Int] = [:]
        while true {
            let (event, line) = try next()
            if case .mapEnd = event { return members }
            guard case .scalar(let name, _) = event else { throw Failure(line: line, problem: "expected a name") }
            if let first = lines.updateValue(line, forKey: name) {
                throw Failure(line: line, problem: "duplicate key '\(name)'; the first is in line \(first)")
            }
            let (value, valueLine) = try next()
            members.append(.init(name: name, line: line, value: try node(value, valueLine, depth: depth + 1)))
        }
    }

    private mutating func list(depth: Int) throws(Failure) -> [Node] {
        var elements: [Node] = []
        while true {
            let (event, line) = try next()
            if case .listEnd = event { return elements }
            elements.append(try node(event, line, depth: depth + 1))
        }
    }

    private func next() throws(Failure) -> (Event, line: Int) {
        var event = yaml_event_t()
        guard yaml_parser_parse(parser, &event) == 1 else { throw failure() }
        defer { yaml_event_delete(&event) }
        let line = Int(event.start_mark.line) + 1
        switch event.type {
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            let text = String(decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)
            // The core schema's words for null (YAML 1.2 section 10.3.2); in quotes they are texts.
            let isNull = scalar.style == YAML_PLAIN_SCALAR_STYLE && ["", "~", "null"].contains(text)
            return (.scalar(text, isNull: isNull), line)
        case YAML_DOCUMENT_START_EVENT: return (.documentStart, line)
        case YAML_MAPPING_START_EVENT: return (.mapStart, line)
        case YAML_MAPPING_END_EVENT: return (.mapEnd, line)
        case YAML_SEQUENCE_START_EVENT: return (.listStart, line)
        case YAML_SEQUENCE_END_EVENT: return (.listEnd, line)
        case YAML_STREAM_END_EVENT: return (.end, line)
        case YAML_ALIAS_EVENT: throw Failure(line: line, problem: "aliases are not supported; write the value out")
        default: return (.other, line)
        }
    }

    /// The failure that libyaml reports, with a hint if a tab is the cause.
    private func failure() -> Failure {
        let parser = parser.pointee
        let problem = parser.problem.map { String(cString: $0) } ?? "the text cannot be read"
        // The reader counts bytes, the scanner and the parser count lines.
        if parser.error == YAML_READER_ERROR {
            let line = bytes.prefix(parser.problem_offset).count { $0 == UInt8(ascii: "\n") } + 1
            return Failure(line: line, problem: "not YAML: \(problem)")
        }
        let line = Int(parser.problem_mark.line) + 1
        if indentation(ofLine: line).contains(UInt8(ascii: "\t")) {
            return Failure(line: line, problem: "the line is indented with a tab; YAML is indented with spaces")
        }
        let context = parser.context.map {
            " \(String(cString: $0)) that begins in line \(parser.context_mark.line + 1)"
        }
        return Failure(line: line, problem: "not YAML: \(problem)\(context ?? "")")
    }

    private func indentation(ofLine line: Int) -> some Sequence<UInt8> {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: line, omittingEmptySubsequences: false)
        let blanks = line <= lines.count ? lines[line - 1] : bytes[0..<0]
        return blanks.prefix { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    }
}
