// `fold`.

enum FoldCommand {
  static func run(_ arguments: RulesArguments) throws {
    throw RulesFailure(operation: "fold", object: "command", cause: "not built")
  }
}
