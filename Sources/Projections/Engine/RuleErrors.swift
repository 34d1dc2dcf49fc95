// The rules over sales and exceptions that lie in a database: what they throw is the database's.

/// Runs the rules, which throw what their source of sales and their sink of exceptions threw.
@inline(__always)
func byRules<Result>(_ body: () throws -> Result) throws(DatabaseError) -> Result {
  do { return try body() } catch let error as DatabaseError { throw error } catch {
    throw DatabaseError(operation: "applying the rules", cause: "\(error)", code: 0)
  }
}
