// The users of a fold: their numbers, and when they were seen.

/// Users by their identifiers. Those that the database has are fetched when they are met.
final class UserTable {
  private struct User {
    var identifier: Text
    var uploads = 0
    var firstSeenAtMs = Int64.max
    var lastSeenAtMs = Int64.min
    var isChanged = false
  }

  private let arena: TextArena
  private let database: Database
  private let isFresh: Bool
  private var users: [Int32: User] = [:]
  private var numbers: [TextKey: Int32] = [:]
  private var nextNumber: Int32
  private lazy var selectByIdentifier = Result { () throws(DatabaseError) in
    try database.prepare(
      """
      SELECT id, uploads, first_seen_at_ms, last_seen_at_ms FROM users WHERE user_identifier = ?
      """)
  }

  init(_ database: Database, _ arena: TextArena, isFresh: Bool) throws(DatabaseError) {
    self.database = database
    self.arena = arena
    self.isFresh = isFresh
    nextNumber = isFresh ? 0 : Int32(try database.integer("SELECT max(id) + 1 FROM users") ?? 0)
  }

  /// The number of a user, a new one where it has none.
  func number(of identifier: Text) throws(DatabaseError) -> Int32 {
    if let known = numbers[TextKey(text: identifier)] { return known }
    let kept = arena.keep(identifier)
    var user = User(identifier: kept)
    var number = nextNumber
    if let stored = try fetch(kept, &user) { number = stored } else { nextNumber += 1 }
    numbers[TextKey(text: kept)] = number
    users[number] = user
    return number
  }

  private func fetch(_ identifier: Text, _ user: inout User) throws(DatabaseError) -> Int32? {
    if isFresh { return nil }
    let statement = try selectByIdentifier.get()
    statement.bind(1, text: identifier)
    defer { statement.reset() }
    guard try statement.step() else { return nil }
    user.uploads = Int(statement.integer(1))
    user.firstSeenAtMs = statement.integer(2)
    user.lastSeenAtMs = statement.integer(3)
    return Int32(statement.integer(0))
  }

  /// Counts an upload of a user.
  func noteUpload(_ number: Int32, atMs: Int64) {
    guard var user = users[number] else { return }
    user.uploads += 1
    user.firstSeenAtMs = min(user.firstSeenAtMs, atMs)
    user.lastSeenAtMs = max(user.lastSeenAtMs, atMs)
    user.isChanged = true
    users[number] = user
  }

  /// The identifier of a user.
  func identifier(_ number: Int32) throws(DatabaseError) -> Text {
    if let user = users[number] { return user.identifier }
    let statement = try database.prepare("SELECT user_identifier FROM users WHERE id = ?")
    statement.bind(1, Int(number))
    guard try statement.step() else { return Text(start: nil, count: 0) }
    let kept = arena.keep(statement.bytes(0))
    return kept
  }

  /// Writes what has changed.
  func store() throws(DatabaseError) {
    let insert = try database.prepare("INSERT OR REPLACE INTO users VALUES(?, ?, ?, ?, ?)")
    for number in users.keys.sorted() {
      guard let user = users[number], user.isChanged else { continue }
      insert.bind(1, Int(number))
      insert.bind(2, text: user.identifier)
      insert.bind(3, user.uploads)
      insert.bind(4, user.firstSeenAtMs)
      insert.bind(5, user.lastSeenAtMs)
      try insert.run()
      users[number]?.isChanged = false
    }
  }
}
