// The commands but for races.
import Base
import Glibc
import ProgramSupport
import Replication

/// Where the store is, and how it is asked.
struct StoreOptions {
  let target: ReplicationTarget
  let settings: ReplicationTarget.S3Settings?

  init(_ arguments: Arguments) throws {
    target = try ReplicationTarget(parsing: arguments.required("--target"))
    guard case .s3 = target else {
      settings = nil
      return
    }
    let file = try SmallFile.read(
      arguments.required("--credentials"), byteCountMax: S3Credentials.fileByteCountMax)
    settings = ReplicationTarget.S3Settings(
      endpoint: arguments.text("--endpoint"), region: arguments.text("--region"),
      credentials: try S3Credentials(parsing: file))
  }

  /// A store with connections of its own.
  func store() throws -> any ObjectStore { try target.store(settings) }
}

struct StoreCall {
  let options: StoreOptions
  let arguments: Arguments
  private static let objectBytesMax = 1 << 30

  init(_ options: StoreOptions, _ arguments: Arguments) {
    (self.options, self.arguments) = (options, arguments)
  }

  func put() throws {
    try withFile { body in try options.store().put(arguments.required("--key"), body) }
  }

  func create() throws {
    try withFile { body in
      let outcome = try options.store().create(arguments.required("--key"), body)
      try StandardOutput.write("\(outcome)\n")
    }
  }

  func get() throws {
    let isThere = try options.store().read(
      arguments.required("--key"), byteCountMax: Self.objectBytesMax
    ) { bytes in
      var written = 0
      while written < bytes.count {
        let count = write(1, bytes.baseAddress.map { $0 + written }, bytes.count - written)
        if count <= 0 { exit(1) }
        written += count
      }
    }
    if !isThere { throw NoObject() }
  }

  func contains() throws {
    let isThere = try options.store().contains(arguments.required("--key"))
    try StandardOutput.write(isThere ? "yes\n" : "no\n")
  }

  func delete() throws { try options.store().delete(arguments.required("--key")) }

  func list() throws {
    let store = try options.store()
    var after = arguments.text("--after")
    while true {
      let entries = try store.list(prefix: arguments.text("--prefix") ?? "", after: after)
      for entry in entries { try StandardOutput.write("\(entry.byteCount)\t\(entry.key)\n") }
      guard entries.count == 1_000 else { return }
      after = entries.last?.key
    }
  }

  func probe() throws { try StoreProbe.check(options.store()) }

  func race() throws {
    let raceCount = try arguments.integer("--races", 1...1_000_000) ?? 1_000
    let pairCount = try arguments.integer("--pairs", 1...64) ?? 8
    let races = Races(options, raceCount: raceCount, pairCount: pairCount)
    try StandardOutput.write(try races.run() + "\n")
  }

  private func withFile(_ body: (ObjectBody) throws -> Void) throws {
    let path = try arguments.required("--file")
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw OutputError("can't open", path, errno) }
    defer { close(descriptor) }
    let bytes = try SmallFile.read(descriptor, byteCountMax: Self.objectBytesMax)
    let digest = bytes.withUnsafeBytes { SHA256.hash($0) }
    try body(
      .file(descriptor: descriptor, offsetBytes: 0, byteCount: bytes.count, sha256: digest))
  }
}
