// config.json on disk: read strictly, changed under a lock, replaced as a whole.
import AppStore
package import Base
import Glibc
package import Ledger

/// The configuration file of a ledger.
package struct ConfigurationFile: Sendable {
  package static let name = "config.json"
  private static let lockName = "config.lock"
  private static let sizeBytesMax = 16 << 20

  private let directory: LedgerDirectory
  /// The file's path.
  package let path: String

  package init(_ directory: LedgerDirectory) {
    self.directory = directory
    path = directory.fullPath(Self.name)
  }

  /// A configuration, and what it was read from.
  struct Loaded: Sendable {
    var configuration = Configuration()
    /// The JSON of the file; an empty object where there is no file.
    var root = JSONValue.object([])
    /// The stamps of the file and of the files that it names; nil where one could not be seen.
    var stamps: [FileStatus?] = []
    var filePaths: [String] = []
  }

  /// The configuration; all defaults where there is no file.
  package func read() throws(ConfigurationError) -> Configuration {
    try load().configuration
  }

  func load() throws(ConfigurationError) -> Loaded {
    let (content, status): ([UInt8], FileStatus)
    do throws(LedgerError) {
      let file = try directory.root.openFile(Self.name, .readOnly, isSecret: true)
      status = try file.status()
      // A directory is opened like a file; it can't be read.
      content =
        status.kind == .regular ? try file.readSmall(byteCountMax: Self.sizeBytesMax) : []
    } catch {
      guard error.code == ENOENT else { throw failure("", Self.words(error.cause)) }
      return Loaded(stamps: [nil], filePaths: [path])
    }
    guard status.kind == .regular else { throw failure("", "it is not a regular file") }
    // It holds secrets: a copy that others could read, or write, is not to be lived with.
    guard status.permissions & 0o077 == 0 else {
      throw failure("", "other users can read or write it, and it holds secrets: run chmod 600")
    }
    // What root uses must be what the ledger's server would use.
    let user = geteuid() == 0 ? (try? directory.root.ownStatus().owner) : geteuid()
    guard status.owner == 0 || status.owner == user else {
      throw failure("", "it belongs to another user")
    }
    let root: JSONValue
    do throws(JSONError) { root = try JSONValue(content) } catch {
      let place = Self.place(of: error.offsetBytes, in: content)
      throw failure(place, "is not JSON: \(error.cause.rawValue)")
    }
    var reader = ConfigurationReader(directoryPath: directory.path)
    let configuration = reader.read(root)
    guard reader.problems.isEmpty else {
      throw ConfigurationError("read", path, reader.problems)
    }
    let stamps = [status] + reader.filePaths.map(stamp)
    return Loaded(
      configuration: configuration, root: root, stamps: stamps,
      filePaths: [path] + reader.filePaths)
  }

  /// What tells whether a file has changed since it was looked at; nil where nothing can be seen there.
  func stamp(_ path: String) -> FileStatus? {
    if let status = try? directory.root.storage.status(path) { return status }
    // A link that leads nowhere.
    return path == self.path ? (try? directory.root.status(Self.name)) ?? nil : nil
  }

  /// The line and the column of a byte, as editors count them: from 1, in characters.
  private static func place(of offset: Int, in content: [UInt8]) -> String {
    let before = content.prefix(offset)
    let start = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
    let line = before.count { $0 == 0x0A } + 1
    return "line \(line), column \(String(decoding: before[start...], as: UTF8.self).count + 1)"
  }

  /// A cause as problems of the configuration give it.
  private static func words(_ cause: String) -> String {
    cause.prefix(1).lowercased() + cause.dropFirst()
  }

  private func failure(_ path: String, _ cause: String) -> ConfigurationError {
    ConfigurationError("read", self.path, [.init(path, cause)])
  }

  // MARK: Changing

  /// Changes the file: reads it, has `body` change its JSON, and replaces it by the canonical text of
  /// that, durably. Members that `body` leaves alone keep their order and digits; white space does not
  /// stay. Two at once come one after the other. What would not be a good configuration is not written.
  package func update<Result>(
    _ body: (Configuration, inout JSONValue) throws -> Result
  ) throws -> Result {
    let lock = try openLock()
    do throws(LedgerError) { _ = try lock.waitForLock() } catch { throw lockFailure(error.cause) }
    defer { lock.unlock() }
    let loaded = try load()
    var root = loaded.root
    let result = try body(loaded.configuration, &root)
    if root == loaded.root { return result }
    var reader = ConfigurationReader(directoryPath: directory.path)
    _ = reader.read(root)
    guard reader.problems.isEmpty else {
      throw ConfigurationError("write", path, reader.problems)
    }
    do throws(LedgerError) {
      try directory.root.replaceFile(Self.name, with: root.indentedBytes)
    } catch {
      throw ConfigurationError("write", path, [.init("", Self.words(error.cause))])
    }
    return result
  }

  private func openLock() throws(ConfigurationError) -> StorageFile {
    do throws(LedgerError) {
      let lock = try directory.root.openLock(Self.lockName)
      // Where root may not give it away, its owner can make none: better none of root's.
      do throws(LedgerError) {
        if lock.isNew { try directory.root.giveNewFileToOwner(lock.file) }
      } catch {
        try directory.root.unlink(Self.lockName)
        throw error
      }
      return lock.file
    } catch { throw lockFailure(error.cause) }
  }

  private func lockFailure(_ cause: String) -> ConfigurationError {
    ConfigurationError("lock", directory.fullPath(Self.lockName), [.init("", cause)])
  }

  /// Makes a token for an app family and keeps its digest. The token's text is nowhere but in the result.
  package func addToken(
    appFamilyID: String, scope: Configuration.Token.Scope = .upload,
    nowMs: Int64 = Timestamp.now()
  ) throws -> (token: String, kept: Configuration.Token) {
    try update { configuration, root in
      var id = TokenText.makeID()
      while configuration.tokens.contains(where: { $0.id == id }) { id = TokenText.makeID() }
      let token = TokenText.make()
      let kept = Configuration.Token(
        id: id, sha256: TokenText.digest(token), appFamilyID: appFamilyID, scope: scope,
        createdAtMs: nowMs)
      var tokens: [JSONValue] = []
      if case .array(let elements)? = root["tokens"] { tokens = elements }
      root.set("tokens", .array(tokens + [kept.json(isMasked: false)]))
      return (token, kept)
    }
  }

  /// Revokes a token, which stays listed; returns whether it was revoked before. Nil where there is none of
  /// that id.
  package func revokeToken(
    id: String, nowMs: Int64 = Timestamp.now()
  ) throws -> (token: Configuration.Token, wasRevoked: Bool)? {
    try update { configuration, root in
      guard var kept = configuration.tokens.first(where: { $0.id == id }) else { return nil }
      guard kept.revokedAtMs == nil, case .array(var elements)? = root["tokens"] else {
        return (kept, true)
      }
      kept.revokedAtMs = max(nowMs, kept.createdAtMs)
      for index in elements.indices where elements[index]["id"]?.stringValue == id {
        elements[index] = kept.json(isMasked: false)
      }
      root.set("tokens", .array(elements))
      return (kept, false)
    }
  }

  /// Sets the shared secret of an app family, or removes it where `secret` is nil. False where there was none
  /// to remove.
  package func setSharedSecret(_ secret: [UInt8]?, appFamilyID: String) throws -> Bool {
    try update { _, root in
      let text = secret.map { JSONValue.string(String(decoding: $0, as: UTF8.self)) }
      return root.changeFamily(appFamilyID, of: "shared_secrets") { _ in text } || secret != nil
    }
  }

  /// What `setWebhook` did.
  package struct WebhookChange: Equatable, Sendable {
    /// The new secret, which is nowhere else but in the file; nil where none was made.
    package var secret: WebhookSecret?
    /// The webhook before; nil where there was none.
    package var before: Configuration.Webhook?

    package init(secret: WebhookSecret? = nil, before: Configuration.Webhook? = nil) {
      (self.secret, self.before) = (secret, before)
    }
  }

  /// How long the secret that another one replaced signs too.
  private static let previousSecretMs: Int64 = 86_400_000

  /// Sets where an app family's webhooks go, or removes that where `url` is nil. Another URL gets a new secret, the
  /// same one keeps its own.
  package func setWebhook(url: String?, appFamilyID: String) throws -> WebhookChange {
    try changeWebhook(appFamilyID) { before in
      guard let url, before?.url != url else { return url == nil ? nil : before }
      return Configuration.Webhook(url: url, secret: .make())
    }
  }

  /// Gives a webhook a new secret. The one that it replaces signs too for a day; nothing where there is no webhook.
  package func replaceWebhookSecret(
    appFamilyID: String, nowMs: Int64 = Timestamp.now()
  ) throws -> WebhookChange {
    try changeWebhook(appFamilyID) { before in
      before.map {
        let previous = Configuration.Webhook.Previous(
          secret: $0.secret, untilMs: nowMs + Self.previousSecretMs)
        return Configuration.Webhook(url: $0.url, secret: .make(), previous: previous)
      }
    }
  }

  private func changeWebhook(
    _ appFamilyID: String, _ change: (Configuration.Webhook?) -> Configuration.Webhook?
  ) throws -> WebhookChange {
    try update { configuration, root in
      let before = configuration.apps[appFamilyID]?.webhook
      let after = change(before)
      if after == before { return WebhookChange(before: before) }
      _ = root.changeFamily(appFamilyID, of: "apps") { settings in
        var settings = settings ?? .object([])
        settings.set("webhook", after?.json(isMasked: false))
        return settings
      }
      return WebhookChange(secret: after?.secret, before: before)
    }
  }
}

extension JSONValue {
  /// Sets a member of an object, in its place or as the last one; nil removes it.
  fileprivate mutating func set(_ key: String, _ value: JSONValue?) {
    guard case .object(var members) = self else { return }
    let index = members.firstIndex { $0.key.hasSameBytes(as: key) }
    switch (index, value) {
    case (nil, nil): return
    case (let index?, nil): members.remove(at: index)
    case (let index?, let value?): members[index].value = value
    case (nil, let value?): members.append(Member(key, value))
    }
    self = .object(members)
  }

  /// Changes the member of an app family in a section. Returns whether there was one.
  fileprivate mutating func changeFamily(
    _ id: String, of section: String, _ change: (JSONValue?) -> JSONValue?
  ) -> Bool {
    var families = self[section] ?? .object([])
    guard case .object(let members) = families else { return false }
    // By hand it may have been written in capitals.
    let existing = members.first { UUID16($0.key)?.description == id }
    let changed = change(existing?.value)
    if existing == nil, changed == nil { return false }
    families.set(existing?.key ?? id, changed)
    set(section, families)
    return existing != nil
  }

  /// The value's text with a member or element a line, and a line feed at its end.
  package var indentedBytes: [UInt8] {
    var text: [UInt8] = []
    appendIndented(to: &text, level: 0)
    text.append(UInt8(ascii: "\n"))
    return text
  }

  private func appendIndented(to text: inout [UInt8], level: Int) {
    let (brackets, items): (String, [(key: String?, value: JSONValue)])
    switch self {
    case .object(let members): (brackets, items) = ("{}", members.map { ($0.key, $0.value) })
    case .array(let elements): (brackets, items) = ("[]", elements.map { (nil, $0) })
    default: (brackets, items) = ("", [])
    }
    guard let open = brackets.utf8.first, let close = brackets.utf8.last, !items.isEmpty else {
      text += bytes
      return
    }
    func newLine(_ level: Int) {
      text.append(UInt8(ascii: "\n"))
      text.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * level))
    }
    text.append(open)
    for (index, item) in items.enumerated() {
      if index > 0 { text.append(UInt8(ascii: ",")) }
      newLine(level + 1)
      if let key = item.key { text += JSONValue.string(key).bytes + Array(": ".utf8) }
      item.value.appendIndented(to: &text, level: level + 1)
    }
    newLine(level)
    text.append(close)
  }
}
