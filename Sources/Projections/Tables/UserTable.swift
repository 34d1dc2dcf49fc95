// The table `users`: each user's number, count of uploads, and first and last upload, if any.
package import Revenue

/// Users by identifier. Users already in the database are fetched when first needed.
package final class UserTable {
  private struct User {
    var number: Int32
    var identifier: Text
    var uploads = 0
    var firstSeenAtMs = Int64.max
    var lastSeenAtMs = Int64.min
    var isChanged = false
  }

  private let arena: TextArena
  private let database: Database
  private let isFresh: Bool
  private let users = ChunkedArray<User>()
  /// Indexes into `users` by identifier and, where number and index differ, by number.
  private let places = HashIndex()
  private var placesByNumber: [Int32: Int] = [:]
  private var nextNumber: Int32
  private var target: RowTarget?
  private lazy var selectByIdentifier = Result { () throws(DatabaseError) in
    try database.prepare(
      """
      SELECT id, uploads, first_seen_at_ms, last_seen_at_ms FROM users WHERE user_identifier = ?
      """)
  }

  package init(_ database: Database, _ arena: TextArena, isFresh: Bool) throws(DatabaseError) {
    self.database = database
    self.arena = arena
    self.isFresh = isFresh
    nextNumber = isFresh ? 0 : try database.nextNumber(of: "users")
  }

  /// The number of a user. A new user gets the next number.
  package func number(of identifier: Text) throws(DatabaseError) -> Int32 {
    let hash = identifier.placeHash()
    if let place = places.find(hash, { users[$0].identifier.equals(identifier) }) {
      return users[place].number
    }
    let kept = arena.keep(identifier)
    var user = User(number: nextNumber, identifier: kept)
    if try !fetch(&user) {
      nextNumber += 1
      user.isChanged = true
    }
    places.insert(hash, users.count)
    // A fold from nothing sees users in the order of their numbers.
    if !isFresh { placesByNumber[user.number] = users.count }
    users.append(user)
    return user.number
  }

  private func place(of number: Int32) -> Int? {
    isFresh ? Int(number) : placesByNumber[number]
  }

  private func fetch(_ user: inout User) throws(DatabaseError) -> Bool {
    if isFresh { return false }
    let statement = try selectByIdentifier.get()
    statement.bind(1, text: user.identifier)
    defer { statement.reset() }
    guard try statement.step() else { return false }
    user.number = try statement.number(0)
    user.uploads = try statement.ordinal(1)
    user.firstSeenAtMs = try statement.optionalInstant(2) ?? .max
    user.lastSeenAtMs = try statement.optionalInstant(3) ?? .min
    return true
  }

  /// Counts an upload of a user.
  package func noteUpload(_ number: Int32, atMs: Int64) {
    guard let place = place(of: number) else { return }
    users.update(place) { user in
      user.uploads += 1
      user.firstSeenAtMs = min(user.firstSeenAtMs, atMs)
      user.lastSeenAtMs = max(user.lastSeenAtMs, atMs)
      user.isChanged = true
    }
  }

  /// The identifier of a user.
  package func identifier(_ number: Int32) throws(DatabaseError) -> Text {
    if let place = place(of: number) { return users[place].identifier }
    let statement = try database.prepare("SELECT user_identifier FROM users WHERE id = ?")
    statement.bind(1, Int(number))
    guard try statement.step() else { return Text(start: nil, count: 0) }
    let kept = arena.keep(statement.bytes(0))
    return kept
  }

  /// Writes the users that have changed.
  package func store(_ rows: RowWriter) throws(DatabaseError) {
    for place in users.indices where users[place].isChanged {
      let user = users[place]
      rows.begin(try target(rows))
      rows.add(Int(user.number))
      rows.add(kept: user.identifier)
      rows.add(user.uploads)
      rows.add(user.uploads > 0 ? user.firstSeenAtMs : nil)
      rows.add(user.uploads > 0 ? user.lastSeenAtMs : nil)
      try rows.end()
      users.update(place) { $0.isChanged = false }
    }
  }

  private func target(_ rows: RowWriter) throws(DatabaseError) -> RowTarget {
    if let target { return target }
    let made = try rows.target(
      upserting: "users", valueCount: 5, key: "id",
      changing: ["uploads", "first_seen_at_ms", "last_seen_at_ms"])
    target = made
    return made
  }
}
