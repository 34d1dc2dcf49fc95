// `csv`.

enum CSVCommand {
  static func run(_ arguments: RulesArguments) throws {
    throw RulesFailure(operation: "csv", object: "command", cause: "not built")
  }
}
