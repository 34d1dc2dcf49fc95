// The part of JSON Schema that docs/openapi.json uses. Any other keyword is an error.
import Base

struct SchemaChecker {
  let document: JSONValue

  /// What is wrong with a value; empty if it fits.
  func problems(_ value: JSONValue, _ schema: JSONValue, at path: String = "$") -> [String] {
    let schema = resolved(schema)
    guard case .object(let members) = schema else { return ["\(path): the schema is no object"] }
    var problems: [String] = []
    for member in members {
      problems += check(value, member.key, member.value, in: schema, at: path)
    }
    return problems
  }

  /// Follows a reference within the document.
  func resolved(_ schema: JSONValue) -> JSONValue {
    guard let reference = schema["$ref"]?.stringValue else { return schema }
    var target = document
    for part in reference.split(separator: "/").dropFirst() {
      target = target[String(part)] ?? .null
    }
    return target
  }

  private func check(
    _ value: JSONValue, _ keyword: String, _ argument: JSONValue, in schema: JSONValue,
    at path: String
  ) -> [String] {
    func fails(_ isGood: Bool) -> [String] { isGood ? [] : ["\(path): \(keyword)"] }
    switch keyword {
    case "description", "example": return []
    case "type":
      let types = argument.arrayValue ?? [argument]
      return fails(types.contains { hasType(value, $0.stringValue ?? "") })
    case "enum": return fails(argument.arrayValue?.contains(value) == true)
    case "pattern":
      guard let text = value.stringValue else { return [] }
      return fails((try? Regex(argument.stringValue ?? "(").firstMatch(in: text)) != nil)
    case "minLength", "maxLength":
      guard let text = value.stringValue, let bound = argument.integerValue else { return [] }
      let count = Int64(text.unicodeScalars.count)
      return fails(keyword == "minLength" ? count >= bound : count <= bound)
    case "minimum", "maximum":
      guard let number = value.integerValue, let bound = argument.integerValue else { return [] }
      return fails(keyword == "minimum" ? number >= bound : number <= bound)
    case "format":
      guard argument == .string("date-time") else { return ["\(path): \(keyword) of another kind"] }
      guard let text = value.stringValue else { return [] }
      let form = #/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/#
      return fails(text.wholeMatch(of: form) != nil)
    case "minItems", "maxItems":
      guard let elements = value.arrayValue, let bound = argument.integerValue else { return [] }
      let count = Int64(elements.count)
      return fails(keyword == "minItems" ? count >= bound : count <= bound)
    case "items":
      return (value.arrayValue ?? []).enumerated().flatMap {
        problems($0.element, argument, at: "\(path)[\($0.offset)]")
      }
    case "required":
      guard case .object = value else { return [] }
      return (argument.arrayValue ?? []).compactMap(\.stringValue).filter { value[$0] == nil }.map {
        "\(path): \($0) is missing"
      }
    case "properties":
      guard case .object(let members) = value else { return [] }
      return members.flatMap { member in
        argument[member.key].map { problems(member.value, $0, at: "\(path).\(member.key)") } ?? []
      }
    case "additionalProperties":
      guard case .object(let members) = value else { return [] }
      guard argument == .boolean(false) else { return ["\(path): \(keyword) of another kind"] }
      return members.filter { schema["properties"]?[$0.key] == nil }.map {
        "\(path): \($0.key) is not described"
      }
    case "anyOf":
      return fails((argument.arrayValue ?? []).contains { problems(value, $0).isEmpty })
    default: return ["\(path): \(keyword) is not known here"]
    }
  }

  private func hasType(_ value: JSONValue, _ type: String) -> Bool {
    switch (type, value) {
    case ("object", .object), ("array", .array), ("string", .string), ("boolean", .boolean),
      ("null", .null):
      true
    case ("integer", .number): value.integerValue != nil
    default: false
    }
  }
}
