// Finds what is about a user: uploads, sales, tokens and accounts, and what these lead to.
import Base
import Ledger
import Projections
import Revenue

/// A user whose erasure is planned.
final class PlannedUser {
  let identifier: String
  let family: UUID16?
  /// Numbers in `users`: the user, and users of whom only a token of this user is known.
  var users: Set<Int64> = []
  var ownership = Ownership()
  /// Tokens and accounts of the user's purchases for which the log was not searched yet.
  var candidates: Set<EvidenceKey> = []
  /// Transactions without a user that uploads show together with this user's.
  var unclaimedIDs: Set<[UInt8]> = []
  /// The receipts that no upload of the user has, and whether they also show others' purchases.
  var linkedReceipts: [Int64: (isShared: Bool, reason: InclusionReason)] = [:]
  /// What first linked each upload of signed transactions that names no user.
  var linkedUploads: [Position: InclusionReason] = [:]

  /// How long after a request a receipt may wait for the App Store: a request must be carried out within a month.
  private static let waitMaxMs: Int64 = 25 * 86_400_000

  /// Until when a receipt may wait, in epoch milliseconds.
  let waitsUntilMs: Int64

  init(_ identifier: String, _ family: UUID16?, requestedAtMs: Int64) {
    waitsUntilMs = requestedAtMs + Self.waitMaxMs
    self.identifier = TokenUser.canonical(user: identifier)
    self.family = family
  }

  /// The token that the request names.
  var namedToken: [UInt8]? {
    guard identifier.hasPrefix(TokenUser.prefix) else { return nil }
    return Array(identifier.utf8.dropFirst(TokenUser.prefix.utf8.count))
  }

  /// The text that identifies the user in other users' data.
  var searched: [UInt8] { namedToken ?? Array(identifier.utf8) }

  /// The keys for which the log is searched.
  var keys: Set<EvidenceKey> {
    var keys = candidates
    for id in ownership.transactionIDs { keys.insert(.transaction(id)) }
    for id in ownership.originalTransactionIDs { keys.insert(.transaction(id)) }
    for token in ownership.appAccountTokens { keys.insert(.token(token)) }
    for account in ownership.accounts.union(ownership.sharedAccounts) {
      keys.insert(.account(account))
    }
    return keys
  }
}

/// The owner of a sale, for one planned user.
enum Owner {
  case user
  /// Another user, who is named by an upload.
  case other
  /// Another user of whom only a token is known.
  case tokenOfOther
  case nobody
}

/// The owners of the tokens and accounts that events show.
private struct NameHolders {
  /// By position: a token belongs to the user who showed it first.
  var tokens: [[UInt8]: Owner] = [:]
  /// The accounts of which another user uploaded a sale.
  var sharedAccounts: Set<[UInt8]> = []
  /// The transactions of an account that are neither the user's nor those of another user's uploads.
  var unclaimed: [[UInt8]: Set<[UInt8]>] = [:]
}

extension ErasurePlanner {
  /// What the erasures of several users redact. Each user counts as erased for those after it.
  func plan(users planned: [PlannedUser]) throws -> [ErasurePlan] {
    let index = EvidenceIndex(reader, before: end, isCancelled: isCancelled)
    for user in planned where try addUser(user.identifier, to: user) {
      try load(user, after: planned)
      try findUploads(user)
      try index.read(ownPositions())
    }
    for case let (user, token?) in planned.map({ ($0, $0.namedToken) }) {
      user.ownership.appAccountTokens.insert(token)
    }
    // Tokens and accounts lead to further purchases, and those to further tokens and accounts.
    repeat {
      for user in planned { try grow(user, after: planned, index) }
    } while try index.search(
      for: planned.reduce(into: []) { $0.formUnion($1.keys) })
    return try planned.map { user in
      try load(user, after: planned)
      let plan = try collect(user, index)
      try database.execute("INSERT OR IGNORE INTO erased_users SELECT id FROM subject_users")
      return plan
    }
  }

  /// Makes a user the subject of queries. Users planned before count as erased.
  private func load(_ user: PlannedUser, after planned: [PlannedUser]) throws {
    try clear()
    let subject = try database.prepare("INSERT OR IGNORE INTO subject_users VALUES(?)")
    for number in user.users {
      subject.bind(1, number)
      try subject.run()
    }
    let erased = try database.prepare("INSERT OR IGNORE INTO gone_users VALUES(?)")
    try database.execute(
      "DELETE FROM gone_users; INSERT INTO gone_users SELECT id FROM erased_users")
    for earlier in planned.prefix(while: { $0 !== user }) {
      for number in earlier.users {
        erased.bind(1, number)
        try erased.run()
      }
    }
    goneUsers = []
    let gone = try database.prepare("SELECT id FROM gone_users")
    while try gone.step() { goneUsers.insert(gone.integer(0)) }
  }

  /// Adds the user with this identifier; false if there is none, or it was added before.
  private func addUser(_ identifier: String, to user: PlannedUser) throws -> Bool {
    let select = try database.prepare("SELECT id FROM users WHERE user_identifier = ?")
    select.bind(1, text: identifier)
    guard try select.step() else { return false }
    return user.users.insert(select.integer(0)).inserted
  }

  // MARK: Further purchases

  /// Adds what follows from the events that were found.
  private func grow(
    _ user: PlannedUser, after planned: [PlannedUser], _ index: EvidenceIndex
  ) throws {
    var isGrowing = true
    while isGrowing {
      try load(user, after: planned)
      try findUploads(user)
      try findIDs(user)
      let found = try positions(found: index, user)
      isGrowing = try addNames(user, found, index)
      if try addLinked(user, found, index) { isGrowing = true }
    }
  }

  /// Finds the tokens and accounts of the user's purchases; returns whether there are new ones.
  private func addNames(
    _ user: PlannedUser, _ found: [Position], _ index: EvidenceIndex
  ) throws -> Bool {
    var holders = NameHolders()
    for position in found {
      for purchase in index.facts[position] ?? [] where !purchase.isRenewal {
        let owner = try owner(of: purchase, user)
        let isOwn = owner == .user || owner == .nobody && user.ownership.holds(purchase)
        // A name that an erasure gave belongs to no user.
        if let token = purchase.appAccountToken, !Self.isName(token) {
          if isOwn { user.candidates.insert(.token(token)) }
          let isByToken = try number(of: token).map { try sellers(of: purchase).contains($0) }
          if owner != .nobody, isByToken != true, holders.tokens[token] == nil {
            holders.tokens[token] = owner
          }
        }
        guard let account = purchase.appTransactionID, !Self.isName(account) else { continue }
        if isOwn { user.candidates.insert(.account(account)) }
        if owner == .other {
          holders.sharedAccounts.insert(account)
        } else if !isOwn, let id = purchase.transactionID {
          holders.unclaimed[account, default: []].insert(id)
        }
      }
    }
    let isGrowing = try resolve(user, holders, index)
    for account in user.ownership.sharedAccounts {
      user.ownership.unclaimedTransactionIDs.formUnion(holders.unclaimed[account] ?? [])
    }
    return isGrowing
  }

  private static func isName(_ text: [UInt8]) -> Bool {
    text.withUnsafeBytes { ErasedUser.isName($0) }
  }

  /// Decides the owners of the candidates for which the log was searched; returns whether the user alone owns one.
  private func resolve(
    _ user: PlannedUser, _ holders: NameHolders, _ index: EvidenceIndex
  ) throws -> Bool {
    var isGrowing = false
    for key in user.candidates where index.hasSearched(key) {
      user.candidates.remove(key)
      switch key {
      case .transaction: break
      case .token(let token):
        if user.ownership.appAccountTokens.contains(token) || user.ownership.others.contains(token)
        {
          continue
        }
        if let owner = holders.tokens[token], owner != .user {
          user.ownership.others.insert(token)
        } else {
          user.ownership.appAccountTokens.insert(token)
          _ = try addUser(TokenUser.prefix + String(decoding: token, as: UTF8.self), to: user)
          isGrowing = true
        }
      case .account(let account):
        if holders.sharedAccounts.contains(account) {
          user.ownership.sharedAccounts.insert(account)
        } else if user.ownership.accounts.insert(account).inserted {
          isGrowing = true
        }
      }
    }
    return isGrowing
  }

  /// Finds the uploads that name no user and show a purchase of this one; returns whether they show more.
  private func addLinked(
    _ user: PlannedUser, _ found: [Position], _ index: EvidenceIndex
  ) throws -> Bool {
    let before = user.unclaimedIDs.count
    for (receipt, facts) in try unnamedReceipts(user, found, index) {
      let shown = try facts.map { ($0, try shows($0, user)) }
      guard let reason = shown.compactMap(\.1.reason).first else { continue }
      let isShared = try shown.contains { $0.1.isOther } || isUploadedByOther(receipt)
      user.linkedReceipts[receipt] = (isShared, user.linkedReceipts[receipt]?.reason ?? reason)
      if !isShared { try addUnclaimed(facts, to: user) }
    }
    for position in found where try isUnnamedSigned(position, user) {
      let facts = index.facts[position] ?? []
      let shown = try facts.map { try shows($0, user) }
      guard let reason = shown.compactMap(\.reason).first else { continue }
      user.linkedUploads[position] = user.linkedUploads[position] ?? reason
      if !shown.contains(where: \.isOther) { try addUnclaimed(facts, to: user) }
    }
    return user.unclaimedIDs.count > before
  }

  private func addUnclaimed(_ facts: [PurchaseFacts], to user: PlannedUser) throws {
    for purchase in facts where try owner(of: purchase, user) == .nobody {
      if let id = purchase.transactionID { user.unclaimedIDs.insert(id) }
    }
  }

  // MARK: Owners of purchases

  /// Whether a purchase shows something of the user, what, and whether it shows something of another.
  func shows(
    _ purchase: PurchaseFacts, _ user: PlannedUser
  ) throws -> (reason: InclusionReason?, isOther: Bool) {
    let owner = try purchase.isRenewal ? .nobody : owner(of: purchase, user)
    let ownership = user.ownership
    var isOther = owner == .other || owner == .tokenOfOther
    if let token = purchase.appAccountToken, ownership.others.contains(token) { isOther = true }
    if let original = purchase.originalTransactionID, try hasOther(original: original) {
      isOther = true
    }
    func has(_ text: [UInt8]?, _ set: Set<[UInt8]>) -> Bool {
      text.map { set.contains($0) } ?? false
    }
    if has(purchase.appTransactionID, ownership.accounts), try isByAccount(purchase) {
      return (.account, isOther)
    }
    if owner == .user || has(purchase.transactionID, ownership.transactionIDs) {
      return (.transaction, isOther)
    }
    if has(purchase.originalTransactionID, ownership.originalTransactionIDs) {
      return (.originalTransaction, isOther)
    }
    if has(purchase.appAccountToken, ownership.appAccountTokens) {
      return (.appAccountToken, isOther)
    }
    return (has(purchase.appTransactionID, ownership.accounts) ? .account : nil, isOther)
  }

  /// The owner of the sale that a purchase shows.
  func owner(of purchase: PurchaseFacts, _ user: PlannedUser) throws -> Owner {
    var owner = Owner.nobody
    for seller in try sellers(of: purchase) {
      if user.users.contains(seller) { return .user }
      if goneUsers.contains(seller) { continue }
      owner = try hasUploads(seller) ? .other : owner == .other ? .other : .tokenOfOther
    }
    return owner
  }
}
