import CYAML

/// A YAML file reduced to what configuration needs: scalars and lists of scalars by their path, with lines for errors.
struct YAMLDocument {
    /// One value of the file.
    struct Entry: Hashable {
        /// "http.port"; keys joined by dots.
        var path: String
        /// One element for a scalar, several for a list.
        var values: [String]
        /// Counted from 1.
        var line: Int
    }

    /// Why a text is not a configuration file.
    struct Failure: Error, Hashable {
        var line: Int
        var problem: String
    }

    private(set) var entries: [Entry] = []

    /// The largest file that is read; a configuration is a few hundred bytes.
    static let maximumBytes = 1 << 20
    /// How deep maps may nest; the table of settings needs three.
    private static let maximumDepth = 8

    /// Reads a text of one document whose root is a map.
    init(parsing text: String) throws(Failure) {
        guard text.utf8.count <= Self.maximumBytes else { throw Failure(line: 1, problem: "the file is too large") }
        var parser = yaml_parser_t()
        guard yaml_parser_initialize(&parser) == 1 else { throw Failure(line: 1, problem: "libyaml has no memory") }
        defer { yaml_parser_delete(&parser) }
        let bytes = Array(text.utf8)
        let result: Result<[Entry], Failure> = bytes.withUnsafeBufferPointer { buffer in
            yaml_parser_set_input_string(&parser, buffer.baseAddress, buffer.count)
            var reader = Reader(parser: &parser)
            do throws(Failure) {
                return .success(try reader.document())
            } catch {
                return .failure(error)
            }
        }
        entries = try result.get()
    }

    private struct Reader {
        let parser: UnsafeMutablePointer<yaml_parser_t>
        var entries: [Entry] = []

        init(parser: UnsafeMutablePointer<yaml_parser_t>) { self.parser = parser }

        private enum Event {
            case scalar(String)
            case mapStart, mapEnd, listStart, listEnd, end, other
        }

        mutating func document() throws(Failure) -> [Entry] {
            while true {
                let (event, line) = try next()
                switch event {
                case .mapStart:
                    try map(path: "", depth: 0)
                    return entries
                case .end: return entries
                case .scalar(let text) where text.isEmpty: continue
                case .scalar, .listStart: throw Failure(line: line, problem: "the file must be a map of settings")
                default: continue
                }
            }
        }

        private mutating func map(path: String, depth: Int) throws(Failure) {
            var seen: Set<String> = []
            while true {
                let (event, line) = try next()
                if case .mapEnd = event { return }
                guard case .scalar(let key) = event else { throw Failure(line: line, problem: "expected a name") }
                guard seen.insert(key).inserted else { throw Failure(line: line, problem: "'\(key)' is there twice") }
                guard depth < YAMLDocument.maximumDepth else { throw Failure(line: line, problem: "nested too deep") }
                try value(path: path.isEmpty ? key : "\(path).\(key)", line: line, depth: depth)
            }
        }

        private mutating func value(path: String, line: Int, depth: Int) throws(Failure) {
            let (event, _) = try next()
            switch event {
            case .scalar(let text): entries.append(Entry(path: path, values: [text], line: line))
            case .listStart: entries.append(Entry(path: path, values: try list(), line: line))
            case .mapStart: try map(path: path, depth: depth + 1)
            default: throw Failure(line: line, problem: "'\(path)' has no value")
            }
        }

        private mutating func list() throws(Failure) -> [String] {
            var values: [String] = []
            while true {
                let (event, line) = try next()
                switch event {
                case .listEnd: return values
                case .scalar(let text): values.append(text)
                default: throw Failure(line: line, problem: "a list may hold plain values only")
                }
            }
        }

        private func next() throws(Failure) -> (Event, line: Int) {
            var event = yaml_event_t()
            guard yaml_parser_parse(parser, &event) == 1 else {
                let problem = parser.pointee.problem.map { String(cString: $0) } ?? "not YAML"
                throw Failure(line: Int(parser.pointee.problem_mark.line) + 1, problem: problem)
            }
            defer { yaml_event_delete(&event) }
            let line = Int(event.start_mark.line) + 1
            switch event.type {
            case YAML_SCALAR_EVENT:
                let scalar = event.data.scalar
                return (
                    .scalar(
                        String(decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)),
                    line
                )
            case YAML_MAPPING_START_EVENT: return (.mapStart, line)
            case YAML_MAPPING_END_EVENT: return (.mapEnd, line)
            case YAML_SEQUENCE_START_EVENT: return (.listStart, line)
            case YAML_SEQUENCE_END_EVENT: return (.listEnd, line)
            case YAML_STREAM_END_EVENT: return (.end, line)
            case YAML_ALIAS_EVENT: throw Failure(line: line, problem: "aliases are not supported")
            default: return (.other, line)
            }
        }
    }
}
