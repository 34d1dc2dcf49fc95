// An authority in a directory of PEM files, so that several programs share one.
private import Base
private import Glibc

/// A directory that holds an authority's private keys and, for other programs, its certificates.
package enum AuthorityDirectory {
  private static let keyFiles = [
    "root.key", "intermediate.key", "signer.key", "purchase-signer.key",
  ]
  /// The key and the certificate of each link of signed objects' chain: ECDSA signs differently each time, so
  /// that the certificates are kept too.
  private static let signedObjectFiles = ["signed-root", "signed-intermediate", "signed-leaf"]
  /// More than any PEM file here has.
  private static let fileBytesMax = 65_536

  /// Loads the authority of a directory; where there is none, makes one. Of several programs that start
  /// at once one makes it, and the others load that.
  package static func open(_ path: String) throws(AuthorityError) -> TestAuthority {
    if access(path, F_OK) != 0 { try make(path) }
    return try load(path)
  }

  /// Loads the authority that `open` made.
  package static func load(_ path: String) throws(AuthorityError) -> TestAuthority {
    var keys: [SigningKey] = []
    for name in keyFiles { keys.append(try SigningKey(pem: read("\(path)/\(name)"))) }
    return try TestAuthority(
      keys: TestAuthority.Keys(
        root: keys[0], intermediate: keys[1], signer: keys[2], purchaseSigner: keys[3]),
      isRealSize: true)
  }

  /// Loads the authority for signed objects of a directory that `open` made.
  package static func loadSignedObjects(
    _ path: String
  ) throws(AuthorityError) -> SignedObjectAuthority {
    var issued: [IssuedCertificate] = []
    let plan = SignedObjectAuthority.Plan()
    for (file, link) in zip(signedObjectFiles, [plan.root, plan.intermediate, plan.leaf]) {
      let name = CertificatePlan.distinguishedName([(ObjectIdentifier.commonName, link.name)])
      issued.append(
        IssuedCertificate(
          der: try certificate(pem: read("\(path)/\(file).pem"), "\(path)/\(file).pem"),
          name: name, issuerName: issued.last?.name ?? name, serial: link.serial,
          key: try SigningKey(pem: read("\(path)/\(file).key"))))
    }
    return SignedObjectAuthority(root: issued[0], intermediate: issued[1], leaf: issued[2])
  }

  /// A signer with the authority for signed objects; makes the directory where there is none.
  package static func objectSigner(_ path: String) throws(AuthorityError) -> ObjectSigner {
    _ = try open(path)
    return ObjectSigner(authority: try loadSignedObjects(path))
  }

  /// Loads the private key of a file; where there is none, makes one on P-256, as App Store Connect hands them out
  /// for the App Store Server API (`.p8`).
  package static func openKey(_ path: String) throws(AuthorityError) -> SigningKey {
    if access(path, F_OK) != 0 { try write(try SigningKey(curve: .p256).pem(), path) }
    return try SigningKey(pem: read(path))
  }

  private static func make(_ path: String) throws(AuthorityError) {
    let partial = "\(path).partial-\(getpid())"
    guard mkdir(partial, 0o700) == 0 else { throw failure("make directory", partial) }
    let files: [String]
    do throws(AuthorityError) {
      files = try fill(partial)
    } catch {
      rmdir(partial)
      throw error
    }
    if rename(partial, path) == 0 { return }
    // Another program was quicker.
    let code = errno
    for name in files { unlink("\(partial)/\(name)") }
    rmdir(partial)
    guard code == ENOTEMPTY || code == EEXIST else {
      throw AuthorityError("make directory", path, String(cString: strerror(code)))
    }
  }

  private static func fill(_ directory: String) throws(AuthorityError) -> [String] {
    let keys = try TestAuthority.Keys()
    let authority = try TestAuthority(keys: keys, isRealSize: true)
    let pairs = zip(
      keyFiles, [keys.root, keys.intermediate, keys.signer, keys.purchaseSigner])
    for (name, key) in pairs { try write(try key.pem(), "\(directory)/\(name)") }
    let certificates = [
      ("root.pem", authority.root), ("intermediate.pem", authority.intermediate),
      ("itunes-store.pem", authority.iTunesStore),
    ]
    for (name, certificate) in certificates {
      try write(certificatePEM(certificate.der), "\(directory)/\(name)")
    }
    let signed = try SignedObjectAuthority(.realSize)
    for (name, link) in zip(signedObjectFiles, [signed.root, signed.intermediate, signed.leaf]) {
      try write(try link.key.pem(), "\(directory)/\(name).key")
      try write(certificatePEM(link.der), "\(directory)/\(name).pem")
    }
    return keyFiles + certificates.map(\.0)
      + signedObjectFiles.flatMap { ["\($0).key", "\($0).pem"] }
  }

  private static func certificate(
    pem: [UInt8], _ path: String
  ) throws(AuthorityError) -> [UInt8] {
    let lines = pem.split(separator: 0x0A).filter { $0.first != UInt8(ascii: "-") }
    do { return try Base64.decode(Array(lines.joined())) } catch {
      throw AuthorityError("read", path, "no certificate in PEM")
    }
  }

  private static func certificatePEM(_ der: [UInt8]) -> [UInt8] {
    var text = Array("-----BEGIN CERTIFICATE-----\n".utf8)
    let base64 = Base64.encode(der)
    for start in stride(from: 0, to: base64.count, by: 64) {
      text += base64[start..<min(start + 64, base64.count)] + [0x0A]
    }
    return text + Array("-----END CERTIFICATE-----\n".utf8)
  }

  private static func failure(_ operation: String, _ object: String) -> AuthorityError {
    AuthorityError(operation, object, String(cString: strerror(errno)))
  }

  private static func write(_ bytes: [UInt8], _ path: String) throws(AuthorityError) {
    let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("create", path) }
    defer { close(descriptor) }
    guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
      throw failure("write", path)
    }
  }

  private static func read(_ path: String) throws(AuthorityError) -> [UInt8] {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure("open", path) }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: fileBytesMax)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    guard count > 0 else { throw failure("read", path) }
    return Array(bytes.prefix(count))
  }
}
