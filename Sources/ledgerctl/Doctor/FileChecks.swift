// Checks of `doctor` on files: who may use them, links, free space.
import Base
import Glibc
import Ledger
import Server

extension Examination {
  /// Where free space runs out, in bytes.
  private static let fullBytes = 64 << 20
  /// What an erasure writes next to the segments at most, in bytes.
  private static let erasureBytes = 1 << 30

  func examineFiles() {
    attempt(.writableByOthers, .readableByOthers, .secretExposed, .foreignOwner, .linkInLedger) {
      let own = try root.ownStatus()
      if own.isWritableByOthers {
        report(
          .writableByOthers, path, "the directory has mode \(mode(own))",
          command: "chmod go-w \(quotedPath())")
      } else if own.permissions & 0o055 != 0 {
        report(
          .readableByOthers, path, "the directory has mode \(mode(own))",
          command: "chmod 700 \(quotedPath())")
      }
      try examine(root.descriptor, "", owner: own.owner)
    }
    attempt(.diskFull, .diskSpace) {
      guard let free = surroundings.freeByteCount(root.path) else {
        throw Failure(
          operation: "examine", object: path, cause: "the system does not tell its free space")
      }
      let needed = projectionByteCount + min(logByteCount, Self.erasureBytes) + Self.fullBytes
      if free < Self.fullBytes {
        report(.diskFull, path, "\(sizeText(free)) are free", command: "df -h \(quotedPath())")
      } else if free < needed {
        report(
          .diskSpace, path,
          "\(sizeText(free)) are free; a rebuild with an erasure needs up to "
            + sizeText(needed))
      }
    }
  }

  private func mode(_ status: FileStatus) -> String {
    let digits = String(status.permissions & 0o7777, radix: 8)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }

  private func quotedPath(_ name: String = "") -> String {
    shellQuotedPath(name.isEmpty ? path : "\(path)/\(name)")
  }

  /// Looks at all that a folder holds. What vanishes meanwhile is passed over: a server renames files.
  private func examine(_ folder: Int32, _ prefix: String, owner: UInt32) throws {
    let names: [String]
    do throws(SystemError) { names = try root.storage.list(folder).sorted() } catch {
      throw Failure(
        operation: "list", object: prefix.isEmpty ? path : prefix,
        cause: systemErrorText(error.code))
    }
    for name in names {
      guard let status = try? root.storage.status(name, in: folder) else { continue }
      let file = prefix + name
      note(status, file, owner: owner)
      guard status.kind == .directory else { continue }
      let inner: Int32
      do throws(SystemError) {
        inner = try root.storage.openDirectory(name, in: folder)
      } catch {
        if error.code == ENOENT { continue }
        throw Failure(operation: "open", object: file, cause: systemErrorText(error.code))
      }
      defer { root.storage.close(inner) }
      try examine(inner, file + "/", owner: owner)
    }
  }

  private func note(_ status: FileStatus, _ file: String, owner: UInt32) {
    switch status.kind {
    case .link:
      // The link that puts a generation of the projections in use.
      if file == "projections.sqlite" || file == "projections.sqlite.new" { return }
      return report(.linkInLedger, file, "it is a symbolic link")
    case .other:
      if file == "ledger.sock" { return }
      return report(.linkInLedger, file, "it is neither a file nor a folder")
    case .regular, .directory: break
    }
    if file.hasPrefix("log/") { logByteCount += status.sizeBytes }
    if file.hasPrefix("projections/"), file.hasSuffix(".sqlite") {
      projectionByteCount = max(projectionByteCount, status.sizeBytes)
    }
    if status.owner != owner {
      report(
        .foreignOwner, file, "its owner is user \(status.owner), the directory's \(owner)",
        command: "chown -R \(owner): \(quotedPath())")
    }
    let isSecret =
      file == "config.json" || file == "keys" || file.hasPrefix("keys/") && file != "keys/lock"
    if isSecret, status.permissions & 0o077 != 0 {
      report(
        .secretExposed, file, "it has mode \(mode(status))",
        command: "chmod go= \(quotedPath(file))")
    } else if status.isWritableByOthers {
      report(
        .writableByOthers, file, "it has mode \(mode(status))",
        command: "chmod -R go-w \(quotedPath())")
    }
  }
}

/// A path as a word of the shell.
private func shellQuotedPath(_ path: String) -> String {
  path.split(separator: "/", omittingEmptySubsequences: false).map {
    $0.isEmpty ? "" : shellQuoted(String($0))
  }.joined(separator: "/")
}
