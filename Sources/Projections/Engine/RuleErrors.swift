// Errors of the rules when sales and exceptions are in a database: they are database errors.

/// Runs the rules, which throw what their source of sales or their exception sink throws.
@inline(__always)
func byRules<Result>(_ body: () throws -> Result) throws(DatabaseError) -> Result {
  do { return try body() } catch let error as DatabaseError { throw error } catch {
    throw DatabaseError(operation: "applying the rules", cause: "\(error)", code: 0)
  }
}
