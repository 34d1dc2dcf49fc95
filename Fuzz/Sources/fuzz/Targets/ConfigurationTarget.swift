// config.json: strict, with every problem at its place and no value in any message.
@testable import Base
@testable import Server

extension FuzzTarget {
  static let configuration = FuzzTarget(
    name: "configuration", inputByteCountMax: 4096,
    words: [
      "\"app_store\":{", "\"production_url\":\"https://", "\"sandbox_url\":\"http://127.0.0.1:",
      "\"timeout_ms\":", "\"trust\":{", "\"additional_roots_sha256\":[", "\"trusted_proxies\":[",
      "\"transaction_intermediates\":[", "\"10.0.0.0/8\"", "\"::1/128\"", "\"shared_secrets\":{",
      "\"tokens\":[{", "\"app_family_id\":\"", "0e7c2f4a-9a0b-4c5d-8e6f-112233445566",
      "\"created_at\":\"2026-01-02T03:04:05.678Z\"", "\"sha256\":\"", "\"retry_first_ms\":",
      "[::1]", "-----BEGIN CERTIFICATE-----\\n", "{\"file\":\"",
    ],
    seeds: {
      let digest = String(repeating: "ab", count: 32)
      let family = "0e7c2f4a-9a0b-4c5d-8e6f-112233445566"
      let texts = [
        "{}", "[]", "{\"app_stor\":{}}",
        "{\"app_store\":{\"production_url\":\"https://buy.example/x\",\"timeout_ms\":5000,"
          + "\"sandbox_url\":\"http://[::1]:8080/verify\",\"calls_max\":64},"
          + "\"verification\":{\"retry_first_ms\":1000,\"retry_ceiling_ms\":2000},"
          + "\"trusted_proxies\":[\"10.0.0.0/8\",\"::1\"]}",
        "{\"trust\":{\"additional_roots_sha256\":[\"\(digest)\"],"
          + "\"local_testing_signers_sha256\":[],\"transaction_intermediates\":[\"AAAA\"]}}",
        "{\"shared_secrets\":{\"\(family)\":\"0123456789abcdef0123456789abcdef\"},"
          + "\"tokens\":[{\"id\":\"t1\",\"app_family_id\":\"\(family)\","
          + "\"created_at\":\"2026-01-02T03:04:05.678Z\",\"sha256\":\"\(digest)\"}]}",
      ]
      let seeds = texts.map { Array($0.utf8) }
      return seeds + seeds.flatMap { BoundaryNumbers.variants(of: $0) }
    },
    check: { input in
      guard let root = try? JSONValue(input) else { return }
      var reader = ConfigurationReader(directoryPath: "/nonexistent")
      let configuration = reader.read(root)
      ConfigurationCheck.problems(reader.problems, root)
      guard reader.problems.isEmpty else { return }
      ConfigurationCheck.indented(root, configuration)
    })
}

private enum ConfigurationCheck {
  static func problems(_ problems: [ConfigurationError.Problem], _ root: JSONValue) {
    let text = problems.map(\.description).joined(separator: "\n")
    require(problems.allSatisfy { !$0.cause.isEmpty }, "problems have causes")
    guard case .object(let members)? = root["shared_secrets"] else { return }
    // Names of members that are not known are said: a secret that one of them contains is no secret.
    let names = names(root).joined(separator: "\n")
    for case .string(let secret) in members.map(\.value)
    where secret.utf8.count >= 16 && !isPart(secret, of: names) {
      require(!isPart(secret, of: text), "no message repeats a secret")
    }
  }

  private static func names(_ value: JSONValue) -> [String] {
    switch value {
    case .object(let members): members.map(\.key) + members.flatMap { names($0.value) }
    case .array(let elements): elements.flatMap(names)
    default: []
    }
  }

  /// What is written indented, as commands write it, means the same.
  static func indented(_ root: JSONValue, _ configuration: Configuration) {
    do {
      let again = try JSONValue(root.indentedBytes)
      require(again == root, "indenting changes nothing")
      var reader = ConfigurationReader(directoryPath: "/nonexistent")
      require(reader.read(again).masked == configuration.masked, "it means the same")
      require(reader.problems.isEmpty, "what is good stays good")
    } catch { require(false, "what is written is JSON: \(error)") }
    let shown = String(decoding: configuration.masked.bytes, as: UTF8.self)
    for secret in configuration.sharedSecrets.values where secret.count >= 16 {
      require(!isPart(String(decoding: secret, as: UTF8.self), of: shown), "secrets are masked")
    }
  }

  private static func isPart(_ part: String, of text: String) -> Bool {
    let (part, text) = (Array(part.utf8), Array(text.utf8))
    guard text.count >= part.count else { return false }
    return (0...text.count - part.count).contains { text[$0...].starts(with: part) }
  }
}
