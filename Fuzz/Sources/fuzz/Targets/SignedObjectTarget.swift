// Signed objects (JWS): taking them apart, and their verdicts.
@testable import AppStore
@testable import AppStoreAuthority
@testable import Base

extension FuzzTarget {
  static let signedObject = FuzzTarget(
    name: "signed-object", inputByteCountMax: 8192,
    words: [
      "eyJ", ".", "{\"alg\":\"ES256\",\"x5c\":[", "\"crit\":", "\"none\"", "=", "-_",
      "\"signedDate\":", "\"environment\":", "\"Production\"", "\"Sandbox\"", "\"Xcode\"",
      "\"LocalTesting\"", "\"receiptType\":", "\"data\":{", "1767323045678",
    ],
    seeds: {
      var seeds: [[UInt8]] = [[], [0]]
      for payload in SampleSignedObjects.payloads {
        let text = try SampleSignedObjects.authority.sign(payload: payload)
        let header = try SignedObject(text).header
        seeds.append([0] + text)
        seeds.append([1] + header + [0x0A] + payload)
        seeds.append([2] + payload)
      }
      return seeds
    },
    check: { input in
      guard let (form, rest) = split(input) else { return }
      switch form % 3 {
      case 0: SignedObjectCheck.text([UInt8](rest))
      case 1: SignedObjectCheck.parts(rest)
      default: SignedObjectCheck.signed([UInt8](rest))
      }
    })
}

private enum SignedObjectCheck {
  private static let nowMs: Int64 = 1_767_323_045_678

  /// Only what the authority signed is valid, whatever its signature's bytes are.
  static func text(_ text: [UInt8]) {
    let object: SignedObject
    do throws(SignedObjectFault) { object = try SignedObject(text) } catch {
      return require(error.kind == .malformed, "what cannot be taken apart is malformed")
    }
    require(
      text.withUnsafeBytes { SignedObject.looksLike($0) }
        || !object.header.starts(with: [0x7B, 0x22]), "an object looks like one")
    require(object.signature.count == 64, "a signature has 64 bytes")
    let again = SignedObject.text(
      header: object.header, payload: object.payload, signature: Array(object.signatureText))
    require(again == text, "an object has one form")
    for verifier in [SampleSignedObjects.verifier, SampleSignedObjects.testingVerifier] {
      if case .invalid = verifier.verify(object, nowMs: nowMs) { continue }
      require(
        SampleSignedObjects.payloads.contains(object.payload), "only what was signed is valid")
    }
    _ = (object.kind, object.missingFact, object.certificateSummaries)
  }

  /// A header and a payload, with a signature of nobody's.
  static func parts(_ input: UnsafeRawBufferPointer) {
    let end = input.firstIndex(of: 0x0A) ?? input.count
    let signature = Base64.encode([UInt8](repeating: 1, count: 64), .url)
    text(
      SignedObject.text(
        header: [UInt8](input[..<end]), payload: [UInt8](input[min(end + 1, input.count)...]),
        signature: signature))
  }

  /// Any payload, signed.
  static func signed(_ payload: [UInt8]) {
    do {
      let object = try SignedObject(try SampleSignedObjects.authority.sign(payload: payload))
      require(object.payload == payload, "a payload is what was signed")
      for verifier in [SampleSignedObjects.verifier, SampleSignedObjects.testingVerifier] {
        switch verifier.verify(object, nowMs: nowMs) {
        case .valid, .locallyValid: require(object.signedDateMs != nil, "a date is needed")
        case .invalid(let fault):
          require(
            fault.kind != .forged || fault == .untrustedRoot, "what is signed is not forged")
        }
      }
    } catch let fault as SignedObjectFault {
      require([.payloadNotJSON, .tooLarge].contains(fault), "a payload is JSON, or is refused")
    } catch { require(false, "the authority signs") }
  }
}
