// A comparison of the current projections with those that the log now produces.
package import Ledger

/// What a rebuild would change.
package struct ProjectionComparison: Sendable {
  /// The number of events that both have folded.
  package let position: Position
  /// Whether the current projections match the log's history.
  package let isOfThisLog: Bool
  package let versions: [ProjectionStatus.Version]
  /// The names of tables, indexes and views whose definitions differ, sorted.
  package let definitions: [String]
  /// All tables, sorted by name.
  package let tables: [TableDifference]
  /// All views, sorted by name; empty if the scope leaves them out.
  package let views: [TableDifference]
  /// Nil if the scope leaves it out, or if there is no `journal_view` to read it from.
  package let revenue: RevenueDifference?

  package var isSameVersions: Bool { versions.allSatisfy(\.isCurrent) }

  /// Whether a rebuild would change nothing.
  package var isEmpty: Bool {
    isOfThisLog && isSameVersions && definitions.isEmpty && tables.allSatisfy(\.isEmpty)
      && views.allSatisfy(\.isEmpty) && revenue?.isEmpty ?? true
  }
}

extension Projector {
  /// What to compare in addition to the tables.
  package enum ComparisonScope: Sendable {
    /// Only the tables: with the same versions, the views follow from them.
    case tables
    /// Also the views that people query, and the revenue of production.
    case everything
  }

  /// Builds the projections from nothing up to the position of the current ones, compares the two, and removes what
  /// it built. The current projections stay in use. They are read in one consistent state, even while events are
  /// being folded into them.
  /// - Parameter rowLimit: the maximum number of rows to keep for each table, and of sales for each row.
  /// - Returns: nil if no projections are in use.
  package func compare(
    _ scope: ComparisonScope, rowLimit: Int = 10
  ) throws(ProjectionError) -> ProjectionComparison? {
    guard generations.current != nil else { return nil }
    let older = try open()
    do {
      try older.execute("BEGIN")
      let progress = try Progress(older)
      if progress.position > reader.head.size { try reader.refresh() }
      let position = min(progress.position, reader.head.size)
      let scratch = try scratchFromNothing(at: position)
      // The file is removed when `scratch` is released.
      defer { withExtendedLifetime(scratch) {} }
      return try compare(older, scratch.path, progress, scope, rowLimit)
    } catch { throw Self.projectionError(error) }
  }

  private func compare(
    _ older: Database, _ path: String, _ progress: Progress, _ scope: ComparisonScope,
    _ rowLimit: Int
  ) throws(ProjectionError) -> ProjectionComparison {
    do {
      let newer = try Database(path: path, mode: .read)
      let comparison = TableComparison(
        older: older, newer: newer, rowLimit: rowLimit, isCancelled: observer.isCancelled)
      var tables: [TableDifference] = []
      for name in try comparison.names(ofType: "table") {
        tables.append(try comparison.compare(name))
      }
      var views: [TableDifference] = []
      var revenue: RevenueDifference?
      if scope == .everything {
        for name in try comparison.names(ofType: "view") {
          views.append(try comparison.compare(name, key: Schema.viewKeys[name] ?? []))
        }
        if views.first(where: { $0.name == "journal_view" })?.isInBoth == true {
          revenue = try RevenueDifference(
            from: older, to: newer, saleLimit: rowLimit, isCancelled: observer.isCancelled)
        }
      }
      return ProjectionComparison(
        position: min(progress.position, reader.head.size), isOfThisLog: rests(progress),
        versions: try versions(older), definitions: try comparison.definitions(),
        tables: tables, views: views, revenue: revenue)
    } catch { throw Self.projectionError(error) }
  }
}

extension Schema {
  /// The columns that identify a row of each view. Views without such columns are not listed.
  static let viewKeys = [
    "app_view": ["app_family_id"], "receipt_view": ["receipt_id"], "upload_view": ["position"],
    "verification_view": ["position"], "user_view": ["user_identifier"],
    "sale_view": ["environment", "bundle_id", "sale_key"],
    "journal_view": ["environment", "bundle_id", "sale_key", "ordinal"],
    "price_view": ["position", "ordinal"], "rate_view": ["position", "ordinal"],
  ]
}
