// Apple Accounts, and their users by the uploads that show their sales (rule R6).

/// How the user of a sale or a subscription is known (rule R6).
package enum UserBasis: Int8, CaseIterable, BitwiseCopyable, Sendable {
  case none
  /// By an upload that shows it.
  case upload
  /// By its Apple Account.
  case account
  /// By its app account token.
  case token
  /// By the upload that took its subscription over from an erased user.
  case takeover

  /// Its name in reports.
  package var word: StaticString {
    switch self {
    case .none: ""
    case .upload, .takeover: "upload"
    case .account: "account"
    case .token: "token"
    }
  }

  /// Whether an upload decides it. Accounts and tokens never replace such a user.
  package var isByUpload: Bool { self == .upload || self == .takeover }

  /// SQL: whether a column has a basis of which `isByUpload` is true.
  package static func isByUploadSQL(_ column: String) -> String {
    let codes = allCases.filter(\.isByUpload).map { "\($0.rawValue)" }
    return "\(column) IN (\(codes.joined(separator: ", ")))"
  }
}

/// What identifies an Apple Account in an app: its `appTransactionId`.
package struct AccountKey {
  package var environment: Symbol
  package var bundle: Symbol
  package var text: Text

  package init(environment: Symbol, bundle: Symbol, text: Text) {
    (self.environment, self.bundle, self.text) = (environment, bundle, text)
  }

  /// A hash for tables in memory.
  var placeHash: UInt64 {
    text.placeHash(
      UInt64(UInt32(bitPattern: environment)) << 32 | UInt64(UInt32(bitPattern: bundle)))
  }
}

/// A user whom an upload names, and the position of the upload.
package struct NamedUser: Equatable, BitwiseCopyable {
  package var user: Int32
  package var position: Int

  package init(user: Int32, position: Int) { (self.user, self.position) = (user, position) }
}

/// An Apple Account in an app. Its text belongs to the store's arena.
package struct Account: BitwiseCopyable {
  /// The account's number, from 0 in the order in which the events name them.
  package var id: Int32
  package var environment: Symbol
  package var bundle: Symbol
  package var text: Text

  /// The first upload with a user that shows a sale of it.
  package var first: NamedUser?
  /// Whether the store keeps further users.
  package var hasLaterUsers = false
  /// Whether there are users whom the store does not keep.
  package var hasUnknownUsers = false
  /// The key of the first app account token of the sales that such uploads show; 0 if they have none.
  package var token: Int64 = 0
  package var hasSeveralTokens = false

  /// Whether the database has no state or another state of it.
  package var isChanged = true
  /// Whether the derived users match its current state.
  var isSettled = false

  package init(id: Int32, environment: Symbol, bundle: Symbol, text: Text) {
    (self.id, self.environment, self.bundle, self.text) = (id, environment, bundle, text)
  }

  package var key: AccountKey {
    AccountKey(environment: environment, bundle: bundle, text: text)
  }

  /// R6: whether a token differs from the first token of a sale that an upload with a user shows.
  func differs(fromToken token: Int64) -> Bool {
    token != 0 && self.token != 0 && (hasSeveralTokens || token != self.token)
  }
}

/// The source of accounts that an earlier run has stored.
package protocol AccountSource: AnyObject {
  /// Adds the account with this key to the store, if there is one.
  func fetch(_ key: AccountKey, into store: AccountStore) throws
  /// Adds the account with this number to the store.
  func fetch(account id: Int32, into store: AccountStore) throws
}

/// The accounts by their keys. Those stored by an earlier run are fetched when first needed.
package final class AccountStore {
  /// The most users that are kept for an account. An account with more users gives none.
  static let userCountMax = 8

  private let arena: TextArena
  package let accounts = ChunkedArray<Account>()
  private let places = HashIndex()
  /// By number; of a store without a source, index and number are the same.
  private var placesByID: [Int32: Int] = [:]
  /// All users of accounts that have several, by the account's number, in the order of their uploads.
  private var users: [Int32: [NamedUser]] = [:]
  /// Nil if all accounts are in memory.
  private unowned let source: (any AccountSource)?
  private var nextID: Int32
  /// The accounts that are not settled.
  private var unsettled: [Int] = []

  package init(_ arena: TextArena, source: (any AccountSource)? = nil, nextID: Int32 = 0) {
    (self.arena, self.source, self.nextID) = (arena, source, nextID)
  }

  /// The index of the account with a key, added if new.
  func place(of key: AccountKey) throws -> Int {
    if let place = known(key) { return place }
    if let source {
      try source.fetch(key, into: self)
      if let place = known(key) { return place }
    }
    return takeIn(
      Account(
        id: nextID, environment: key.environment, bundle: key.bundle, text: arena.keep(key.text)))
  }

  /// The index of the account with a number, which must exist.
  func place(ofAccount id: Int32) throws -> Int {
    guard let source else { return Int(id) }
    if let place = placesByID[id] { return place }
    try source.fetch(account: id, into: self)
    guard let place = placesByID[id] else {
      preconditionFailure("a sale is of an account that does not exist")
    }
    return place
  }

  /// The index of an account that is already in memory.
  func known(_ key: AccountKey) -> Int? {
    places.find(key.placeHash) { place in
      let account = accounts[place]
      return account.environment == key.environment && account.bundle == key.bundle
        && account.text.equals(key.text)
    }
  }

  /// Adds an account; its text must be in the arena.
  /// - Parameter users: of an account that has several, all of them.
  @discardableResult
  package func takeIn(_ account: Account, users: [NamedUser] = []) -> Int {
    let place = accounts.count
    var account = account
    account.isSettled = !account.isChanged
    accounts.append(account)
    nextID = max(nextID, account.id + 1)
    places.insert(account.key.placeHash, place)
    if source != nil { placesByID[account.id] = place }
    if !users.isEmpty { self.users[account.id] = users }
    if !account.isSettled { unsettled.append(place) }
    return place
  }

  /// The users whom uploads of an account's sales name, in the order of these uploads.
  package func users(_ place: Int) -> [NamedUser] {
    let account = accounts[place]
    if account.hasLaterUsers { return users[account.id] ?? [] }
    return account.first.map { [$0] } ?? []
  }

  func setUsers(_ place: Int, _ users: [NamedUser]) {
    update(place) {
      $0.first = users.first
      $0.hasLaterUsers = users.count > 1
    }
    if users.count > 1 { self.users[accounts[place].id] = users }
  }

  /// Changes an account, on which users of sales and subscriptions may depend.
  func update(_ place: Int, _ change: (inout Account) -> Void) {
    let isNew = accounts.update(place) { account in
      change(&account)
      account.isChanged = true
      defer { account.isSettled = false }
      return account.isSettled
    }
    if isNew { unsettled.append(place) }
  }

  /// Marks an account as stored in its current state.
  package func setStored(_ place: Int) { accounts.update(place) { $0.isChanged = false } }

  /// Calls `body` with the accounts that changed since the last call, which count as settled afterwards.
  func settle(_ body: ([Int]) throws -> Void) rethrows {
    if unsettled.isEmpty { return }
    try body(unsettled)
    for place in unsettled { accounts.update(place) { $0.isSettled = true } }
    unsettled.removeAll()
  }

  /// Whether the account with a number has changed since accounts were settled.
  func isUnsettled(account id: Int32) -> Bool {
    let place = source == nil ? Int(id) : placesByID[id]
    return place.map { !accounts[$0].isSettled } ?? false
  }
}
