// The open work of a ledger outside its log, for a new writer: webhooks' progress and unfinished erasure requests.
import Base
import Ledger

/// The files of open work, by name.
package struct OpenWork: Equatable, Sendable {
  /// Of `webhooks/`: the state of each webhook, and the operator's instructions for it.
  var webhooks: [String: [UInt8]] = [:]
  /// Of `erasures/`: the waiting and running requests, which name users. Never the lines of a pass.
  var erasures: [String: [UInt8]] = [:]

  static let webhooksFolder = "webhooks"
  static let erasuresFolder = "erasures"
  /// The most bytes of the object: more than all requests that may wait.
  static let byteCountMax = 1 << 30
  static let fileByteCountMax = 1 << 20

  init() {}

  var isEmpty: Bool { webhooks.isEmpty && erasures.isEmpty }

  // MARK: Names

  private static func isID(_ name: Substring) -> Bool {
    UUID16(String(name)).map { $0.description == name } ?? false
  }

  static func isWebhookFile(_ name: String) -> Bool {
    [".json", ".request"].contains { name.hasSuffix($0) && isID(name.dropLast($0.count)) }
  }

  static func isRequestFile(_ name: String) -> Bool {
    name.hasSuffix(".json") && isID(name.dropLast(".json".count))
  }

  // MARK: Bytes

  /// The object: one line of JSON.
  var bytes: [UInt8] {
    func files(_ files: [String: [UInt8]]) -> JSONValue {
      .object(
        files.sorted { $0.key < $1.key }
          .map { JSONValue.Member($0.key, .string(String(decoding: $0.value, as: UTF8.self))) })
    }
    return JSONValue.object([
      .init(Self.webhooksFolder, files(webhooks)), .init(Self.erasuresFolder, files(erasures)),
    ]).bytes + [0x0A]
  }

  /// Nil for bytes that this program would not write.
  package init?(_ bytes: [UInt8]) {
    guard bytes.last == 0x0A, let value = try? JSONValue(Array(bytes.dropLast())),
      let webhooks = Self.files(value[Self.webhooksFolder], Self.isWebhookFile),
      let erasures = Self.files(value[Self.erasuresFolder], Self.isRequestFile)
    else { return nil }
    (self.webhooks, self.erasures) = (webhooks, erasures)
    guard self.bytes == bytes else { return nil }
  }

  private static func files(
    _ value: JSONValue?, _ isName: (String) -> Bool
  ) -> [String: [UInt8]]? {
    guard case .object(let members)? = value else { return nil }
    var files: [String: [UInt8]] = [:]
    for member in members {
      guard isName(member.key), let text = member.value.stringValue,
        text.utf8.count <= fileByteCountMax
      else { return nil }
      files[member.key] = Array(text.utf8)
    }
    return files
  }

  // MARK: Files

  /// Writes the files into a ledger's directory, durably. Other files remain: a request that was already carried out
  /// finds nothing when it runs again.
  /// - Parameters:
  ///   - size: how many events the ledger has.
  ///   - bounded: adjusts a webhook's file to a log of this many events.
  func write(
    to root: Folder, size: Int, bounded: ([UInt8], Int) -> [UInt8]
  ) throws(LedgerError) {
    for (name, files) in [(Self.webhooksFolder, webhooks), (Self.erasuresFolder, erasures)]
    where !files.isEmpty {
      let isNew = try root.folderIfPresent(name) == nil
      let folder = try root.madeFolder(name)
      if isNew {
        try root.giveNewFolderToOwner(folder)
        try root.sync()
      }
      for (file, bytes) in files.sorted(by: { $0.key < $1.key }) {
        try folder.replaceFile(
          file, with: name == Self.webhooksFolder ? bounded(bytes, size) : bytes)
      }
    }
  }
}

/// Reads the files of open work repeatedly; unchanged files are not read again.
struct OpenWorkReader {
  private struct Known {
    let stamp: FileStamp
    /// Nil if it is not part of the open work.
    let bytes: [UInt8]?
  }

  private var webhooks: [String: Known] = [:]
  private var erasures: [String: Known] = [:]

  mutating func read(_ directory: LedgerDirectory) throws(LedgerError) -> OpenWork {
    webhooks = try Self.files(
      of: directory, OpenWork.webhooksFolder, OpenWork.isWebhookFile, knowing: webhooks
    ) { _ in true }
    erasures = try Self.files(
      of: directory, OpenWork.erasuresFolder, OpenWork.isRequestFile, knowing: erasures
    ) { value in
      // A finished or failed request names no user; its result is kept only on this disk.
      let state = value["state"]?.stringValue
      return state == "waiting" || state == "running"
    }
    var work = OpenWork()
    work.webhooks = webhooks.compactMapValues(\.bytes)
    work.erasures = erasures.compactMapValues(\.bytes)
    return work
  }

  private static func files(
    of directory: LedgerDirectory, _ name: String, _ isName: (String) -> Bool,
    knowing known: [String: Known], _ isOpen: (JSONValue) -> Bool
  ) throws(LedgerError) -> [String: Known] {
    guard let folder = try directory.folderIfPresent(name) else { return [:] }
    var files: [String: Known] = [:]
    for name in try folder.names() where isName(name) {
      // A file that is removed meanwhile counts as missing.
      guard let status = try folder.status(name) else { continue }
      let stamp = FileStamp(status)
      if let known = known[name], known.stamp == stamp {
        files[name] = known
        continue
      }
      guard let bytes = try content(name, folder) else { continue }
      let isPart =
        String(validating: bytes, as: UTF8.self) != nil
        && ((try? JSONValue(bytes)).map(isOpen) ?? false)
      files[name] = Known(stamp: stamp, bytes: isPart ? bytes : nil)
    }
    return files
  }

  private static func content(
    _ name: String, _ folder: Folder
  ) throws(LedgerError) -> [UInt8]? {
    do throws(LedgerError) {
      return try folder.openFile(name, .readOnly)
        .readSmall(byteCountMax: OpenWork.fileByteCountMax)
    } catch {
      if try folder.status(name) == nil { return nil }
      throw error
    }
  }
}
