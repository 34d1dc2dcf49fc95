// `scan`.

enum ScanCommand {
  static func run(_ arguments: RulesArguments) throws {
    throw RulesFailure(operation: "scan", object: "command", cause: "not built")
  }
}
