// A comparison as a plain function, which compiles in half the time of #expect.

// A build of the programs alone compiles this module too, without the testing library.
#if canImport(Testing)
  package import Testing

  /// Records an issue, with both values, unless they are equal.
  package func expectEqual<Value: Equatable>(
    _ value: Value, _ expected: Value, _ comment: @autoclosure () -> Comment? = nil,
    fileID: String = #fileID, filePath: String = #filePath, line: Int = #line, column: Int = #column
  ) {
    if value == expected { return }
    let more = comment().map { ": \($0.rawValue)" } ?? ""
    Issue.record(
      "\(value) is not \(expected)\(more)",
      sourceLocation: SourceLocation(
        fileID: fileID, filePath: filePath, line: line, column: column))
  }
#endif
