import Testing

/// What `#require` does, for expressions that its macro cannot take apart: calls with spans, and calls that mutate.
func unwrapped<Value>(_ value: Value?, sourceLocation: SourceLocation = #_sourceLocation) throws -> Value {
    try #require(value, sourceLocation: sourceLocation)
}
