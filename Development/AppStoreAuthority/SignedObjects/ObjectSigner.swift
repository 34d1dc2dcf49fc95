// Signs objects by the thousand: the header, which is the same for all, is written once.
private import Base

/// Signs payloads as the App Store does, or with a fault.
package final class ObjectSigner: Sendable {
  package let authority: SignedObjectAuthority
  /// The first part of each good object, with the point behind it.
  private let prefix: [UInt8]
  private let faulty = Monitor<[ObjectFault: SignedObjectAuthority]>([:])

  package init(authority: SignedObjectAuthority) {
    self.authority = authority
    prefix = Base64.encode(SignedObjectForm().writtenHeader(authority.chain), .url) + [0x2E]
  }

  /// Signs bytes, which need not be JSON.
  /// - Returns: the JWS in compact serialization.
  package func sign(_ payload: [UInt8]) throws(AuthorityError) -> [UInt8] {
    var text = prefix
    text.reserveCapacity(prefix.count + payload.count * 4 / 3 + 92)
    text += Base64.encode(payload, .url)
    let signature = try authority.leaf.key.signES256(text)
    text.append(0x2E)
    text += Base64.encode(signature, .url)
    return text
  }

  /// Signs bytes with a fault. Certificates with faults are made once for each signer.
  package func sign(_ payload: [UInt8], _ fault: ObjectFault?) throws(AuthorityError) -> [UInt8] {
    guard let fault else { return try sign(payload) }
    let signer = try faulty.withLock { faulty throws(AuthorityError) in
      if let made = faulty[fault] { return made }
      let made = try authority.certificates(for: fault)
      faulty[fault] = made
      return made ?? authority
    }
    return fault.bend(try signer.sign(payload: payload, fault.form(signer.chain)))
  }
}
