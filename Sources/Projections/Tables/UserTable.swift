// The tables `users` (number, count of uploads, first and last upload), `accounts` and `account_users`.
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

// MARK: - Accounts

/// Writes the Apple Accounts of a store and their users by uploads (rule R6), and fetches those of earlier runs.
package final class AccountTable: AccountSource {
  private let database: Database
  private let arena: TextArena
  private var target: RowTarget?
  private var userTarget: RowTarget?
  private lazy var selectByKey = Result { () throws(DatabaseError) in
    try database.prepare(
      """
      SELECT * FROM accounts WHERE account_hash = ? AND app_transaction_id = ?
      AND environment = ? AND bundle = ?
      """)
  }
  private lazy var selectByID = Result { () throws(DatabaseError) in
    try database.prepare("SELECT * FROM accounts WHERE id = ?")
  }
  private lazy var selectUsers = Result { () throws(DatabaseError) in
    try database.prepare(
      "SELECT user, position FROM account_users WHERE account = ? ORDER BY ordinal")
  }

  package init(_ database: Database, _ arena: TextArena) {
    (self.database, self.arena) = (database, arena)
  }

  // MARK: Fetching

  package func fetch(_ key: AccountKey, into store: AccountStore) throws(DatabaseError) {
    let statement = try selectByKey.get()
    defer { statement.reset() }
    statement.bind(1, key.text.indexHash)
    statement.bind(2, text: key.text)
    statement.bind(3, Int(key.environment))
    statement.bind(4, Int(key.bundle))
    if try statement.step() { try takeIn(statement, store) }
  }

  package func fetch(account id: Int32, into store: AccountStore) throws(DatabaseError) {
    let statement = try selectByID.get()
    defer { statement.reset() }
    statement.bind(1, Int(id))
    guard try statement.step() else {
      throw DatabaseError(inconsistency: "a sale is of an account that does not exist")
    }
    try takeIn(statement, store)
  }

  private func takeIn(_ row: Statement, _ store: AccountStore) throws(DatabaseError) {
    var account = Account(
      id: try row.number(0), environment: try row.number(1), bundle: try row.number(2),
      text: arena.keep(row.bytes(4)))
    account.token = row.optionalInteger(5) ?? 0
    account.hasSeveralTokens = try row.flag(6)
    account.hasUnknownUsers = try row.flag(7)
    if let user: Int32 = try row.optionalNumber(8) {
      account.first = NamedUser(user: user, position: try row.ordinal(9))
    }
    account.hasLaterUsers = try row.flag(10)
    account.isChanged = false
    store.takeIn(account, users: account.hasLaterUsers ? try users(of: account) : [])
  }

  private func users(of account: Account) throws(DatabaseError) -> [NamedUser] {
    let rows = try selectUsers.get()
    defer { rows.reset() }
    rows.bind(1, Int(account.id))
    var users: [NamedUser] = []
    while try rows.step() {
      users.append(NamedUser(user: try rows.number(0), position: try rows.ordinal(1)))
    }
    return users
  }

  // MARK: Writing

  /// Writes the changed accounts.
  package func store(_ store: AccountStore, _ rows: RowWriter) throws(DatabaseError) {
    for place in store.accounts.indices where store.accounts[place].isChanged {
      let account = store.accounts[place]
      rows.begin(try target(rows))
      rows.add(Int(account.id))
      rows.add(Int(account.environment))
      rows.add(Int(account.bundle))
      rows.add(account.text.indexHash)
      rows.add(kept: account.text)
      rows.add(account.token == 0 ? nil : account.token)
      rows.add(account.hasSeveralTokens ? 1 : 0)
      rows.add(account.hasUnknownUsers ? 1 : 0)
      rows.add(symbol: account.first?.user ?? -1)
      rows.add(position: account.first?.position ?? -1)
      rows.add(account.hasLaterUsers ? 1 : 0)
      try rows.end()
      if account.hasLaterUsers { try write(store.users(place), of: account, rows) }
      store.setStored(place)
    }
  }

  /// Writes all users of an account that has several. Their number never shrinks.
  private func write(
    _ users: [NamedUser], of account: Account, _ rows: RowWriter
  ) throws(DatabaseError) {
    for (ordinal, named) in users.enumerated() {
      if userTarget == nil {
        userTarget = try rows.target("INSERT OR REPLACE INTO account_users", valueCount: 4)
      }
      guard let userTarget else { return }
      rows.begin(userTarget)
      rows.add(Int(account.id))
      rows.add(ordinal)
      rows.add(Int(named.user))
      rows.add(named.position)
      try rows.end()
    }
  }

  private func target(_ rows: RowWriter) throws(DatabaseError) -> RowTarget {
    if let target { return target }
    let made = try rows.target(
      upserting: "accounts", valueCount: 11, key: "id",
      changing: [
        "token", "has_several_tokens", "has_unknown_users", "user", "user_position",
        "has_later_users",
      ])
    target = made
    return made
  }
}
