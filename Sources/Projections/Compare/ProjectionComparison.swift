// The current projections compared with those that the log gives now.
package import Ledger

/// What a rebuild would change.
package struct ProjectionComparison: Sendable {
  /// How many events both have folded.
  package let position: Position
  /// Whether the current ones have the log's history.
  package let isOfThisLog: Bool
  package let versions: [ProjectionStatus.Version]
  /// Tables and views whose definitions differ, by name; also indexes.
  package let definitions: [String]
  /// All tables, by name.
  package let tables: [TableDifference]
  /// All views, by name; empty where they were not asked for.
  package let views: [TableDifference]
  /// Nil where it was not asked for, or where there is no `journal_view` to read it from.
  package let revenue: RevenueDifference?

  package var isSameVersions: Bool { versions.allSatisfy(\.isCurrent) }

  /// Whether a rebuild would change nothing.
  package var isEmpty: Bool {
    isOfThisLog && isSameVersions && definitions.isEmpty && tables.allSatisfy(\.isEmpty)
      && views.allSatisfy(\.isEmpty) && revenue?.isEmpty ?? true
  }
}

extension Projector {
  /// What is compared besides the tables.
  package enum ComparisonScope: Sendable {
    /// Nothing: views follow from tables of the same versions.
    case tables
    /// The views that people query, and the revenue of production.
    case everything
  }

  /// Builds the projections from nothing up to the position of those in use, compares the two, and removes what
  /// it built: nothing is put in use. The current ones are read in one consistent state, even while others fold.
  /// - Parameter rowLimit: the most rows kept for each table, and sales for each row.
  /// - Returns: nil where no projections are in use.
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
      // The file goes with `scratch`.
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
  /// What identifies a row of a view, where anything does.
  static let viewKeys = [
    "app_view": ["app_family_id"], "receipt_view": ["receipt_id"], "upload_view": ["position"],
    "verification_view": ["position"], "user_view": ["user_identifier"],
    "sale_view": ["environment", "bundle_id", "sale_key"],
    "journal_view": ["environment", "bundle_id", "sale_key", "ordinal"],
    "price_view": ["position", "ordinal"], "rate_view": ["position", "ordinal"],
  ]
}
