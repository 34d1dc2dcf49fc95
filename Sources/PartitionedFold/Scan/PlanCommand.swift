// `plan`.

enum PlanCommand {
  static func run(_ arguments: RulesArguments) throws {
    throw RulesFailure(operation: "plan", object: "command", cause: "not built")
  }
}
