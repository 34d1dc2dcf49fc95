// The key of the App Store Server API in config.json: which files are accepted, and that no key is shown.
import AppStore
import AppStoreAuthority
import Base
import Foundation
import Glibc
import HTTPClient
import Ledger
import Server
import TestSupport
import Testing

@Suite struct ServerAPIConfigurationTests {
  private static let place = "apps.\(ConfigurationSample.family).server_api.private_key_file"

  private static func members(_ file: String) -> String {
    ConfigurationSample.serverAPI(
      #"{"issuer_id":"57246542-96fe-1a63-e053-0824d011072a","key_id":"2X9R4HXF34","#
        + #""private_key_file":"\#(file)"}"#)
  }

  /// A ledger with a key in `keys/good.p8`.
  private static func ledger() throws -> (ConfiguredLedger, pem: String) {
    let ledger = try ConfiguredLedger()
    let pem = String(decoding: try SigningKey(curve: .p256).pem(), as: UTF8.self)
    try FileManager.default.createDirectory(
      atPath: ledger.directory.fullPath("keys"), withIntermediateDirectories: true)
    try ledger.write(pem, "keys/good.p8")
    return (ledger, pem)
  }

  @Test(arguments: [0o600, 0o400])
  func aKeyThatOnlyItsOwnerReadsIsTaken(_ permissions: Int) throws {
    let (ledger, pem) = try Self.ledger()
    try ledger.write(pem, "keys/good.p8", permissions: permissions)
    for file in ["keys/good.p8", "./keys/good.p8", ledger.directory.fullPath("keys/good.p8")] {
      try ledger.write(Self.members(file))
      let configuration = try ledger.file.read()
      let key = try #require(configuration.apps[ConfigurationSample.family]?.serverAPI)
      #expect(key.keyID == "2X9R4HXF34" && key.privateKey?.name == file)
      #expect(key.account(bundleID: "app").token(nowMs: 0) != nil)
      let shown = String(decoding: configuration.masked.indentedBytes, as: UTF8.self)
      #expect(shown.contains("2X9R4HXF34"))
      for line in pem.split(separator: "\n") { #expect(!shown.contains(line)) }
    }
  }

  @Test func aFileThatOthersMayReadOrThatIsALinkIsRefused() throws {
    let (ledger, pem) = try Self.ledger()
    try ledger.write(pem, "keys/open.p8", permissions: 0o640)
    try ledger.write("no key", "keys/none.p8")
    let p384 = String(decoding: try SigningKey(curve: .p384).pem(), as: UTF8.self)
    try ledger.write(p384, "keys/other.p8")
    try ledger.write(pem + String(repeating: "\n", count: 9_000), "keys/large.p8")
    let path = ledger.directory.fullPath
    try #require(symlink("good.p8", path("keys/link.p8")) == 0)
    try #require(symlink("keys", path("folder")) == 0)
    let cases = [
      ("keys/open.p8", "other users can read or write the file: run chmod 600"),
      ("keys/link.p8", "the file is a symbolic link; name the file itself"),
      (path("keys/link.p8"), "the file is a symbolic link; name the file itself"),
      ("folder/good.p8", "the file cannot be read: not a directory"),
      ("keys", "the file is not a regular file"),
      ("keys/none.p8", ServerAPIKeyError.notPKCS8.rawValue),
      ("keys/other.p8", ServerAPIKeyError.notP256.rawValue),
      ("keys/large.p8", "the file cannot be read: it is larger than 8192 bytes"),
      ("", "must name a file"),
    ]
    for (file, cause) in cases {
      try expectEqual(ledger.problems(Self.members(file)), ["\(Self.place): \(cause)"], "\(file)")
    }
  }

  @Test func anotherKeyIsAnotherConfiguration() throws {
    let (ledger, _) = try Self.ledger()
    try ledger.write(Self.members("keys/good.p8"))
    let first = try ledger.file.read()
    try expectEqual(ledger.file.read(), first)
    try ledger.write(
      String(decoding: try SigningKey(curve: .p256).pem(), as: UTF8.self), "keys/good.p8")
    #expect(try ledger.file.read() != first)
  }
}
