// Uploads: the body of an HTTP request, and the line of an import file.
@testable import Base
@testable import Intake
@testable import Projections
@testable import Server

extension FuzzTarget {
  static let upload = FuzzTarget(
    name: "upload", inputByteCountMax: 3072,
    words: [
      "{\"receipt\":\"", "\"country_code\":", "\"identifier_for_vendor\":", "\"user_identifier\":",
      "\"user_identifer\":", "\"ip_address\":", "\"NULL\"", "null", "\"metadata\":{",
      "\"verification\":{", "\"reply\":{", "\"occurred_at\":", "\"endpoint\":\"sandbox\"",
      "\"marketplace\":\"itunes\"", "\"::ffff:1.2.3.4\"", "\"127.0.0.1\"", "\"de\"", "\"XK\"",
      "2026-01-02T03:04:05Z", "AAAA", "AA==", "\\r\\n", "\\u002b", "\"signed_transactions\":[",
      "\"app_transaction\":", "\"notification\":\"", "\"environment\":\"Sandbox\"",
      "\"notification_v1\":{", "\"notification_type\":\"", "\"unified_receipt\":{",
      "\"latest_receipt\":\"", "\"bid\":\"", "\"auto_renew_status\":", "\"password\":\"",
    ],
    seeds: {
      let texts = [
        "", "{}", "[]",
        "{\"receipt\":\"QUJD\"}",
        "{\"receipt\":\"QU JD\\r\\n\",\"country_code\":\"de\",\"user_identifier\":\"user-4711\","
          + "\"identifier_for_vendor\":\"vendor\",\"ip_address\":\"203.0.113.7\","
          + "\"metadata\":{\"a\":[1,{\"b\":null}]}}",
        "{\"receipt\":\"QUJD\",\"ip_address\":null,\"metadata\":null,\"country_code\":null}",
        "{\"receipt\":\"QUJD\",\"metadata\":{\"prices\":[{\"product_id\":\"coins\",\"price\":\"9.99\","
          + "\"price_micros\":9990000,\"price_milliunits\":9990,\"currency\":\"EUR\"}]}}",
        "{\"receipt\":17,\"country_code\":\"ZZ\",\"ip_address\":\"nowhere\",\"metadata\":[]}",
        "{\"receipt\":\"QUJD\",\"occurred_at\":\"2026-01-02T03:04:05Z\",\"marketplace\":\"itunes\","
          + "\"user_identifer\":\"old\",\"verification\":{\"endpoint\":\"production\","
          + "\"occurred_at\":1767225600000,\"reply\":{\"status\":0,\"receipt\":{\"in_app\":[]}}}}",
        "{\"signed_transactions\":[\"ey.ey.AA\",7],\"app_transaction\":\"ey\",\"country_code\":\"de\"}",
        "{\"notification\":\"ey.ey.AA\",\"user_identifier\":\"user-4711\"}",
        "{\"signed_transactions\":[\"ey.ey.AA\"],\"environment\":\"Sandbox\"}",
        "{\"notification_v1\":{\"notification_type\":\"RENEWAL\",\"bid\":\"b\",\"password\":\"user-4711\","
          + "\"auto_renew_status\":\"true\",\"unified_receipt\":{\"status\":0,\"latest_receipt\":\"QUJD\","
          + "\"environment\":\"Production\",\"latest_receipt_info\":[{\"transaction_id\":\"1\"}]}},"
          + "\"occurred_at\":1767225600000}",
        "{\"notification_type\":\"RENEWAL\",\"unified_receipt\":{\"status\":0,\"latest_receipt\":\"QUJD\","
          + "\"latest_receipt_info\":[{\"purchase_date_ms\":\"1767225600000\"}]}}",
        "{\"receipt\":\"QUJD\",\"metadata\":{\"deep\":"
          + String(repeating: "[", count: 40) + String(repeating: "]", count: 40) + "}}",
      ]
      let seeds = texts.map { Array($0.utf8) }
      return seeds + seeds.flatMap { BoundaryNumbers.variants(of: $0) }
    },
    check: { input in
      UploadCheck.request(Array(input))
      UploadCheck.signedRequest(Array(input))
      UploadCheck.importLine(input)
    })
}

private enum UploadCheck {
  static func request(_ body: [UInt8]) {
    do throws(HTTPResponse) {
      var isWithheld = false
      let fields = try UploadRequest.fields(body, isClientWithheld: &isWithheld)
      check(fields)
      let again = try UploadRequest.fields(text(of: fields), isClientWithheld: &isWithheld)
      require(same(fields, again), "fields are read as they were written")
    } catch {
      require([400, 422].contains(error.status), "a bad body is the client's fault")
      let answer = error.body.bytes
      require((try? JSONValue(answer)) != nil, "an answer is JSON")
      keepsSecrets(String(decoding: answer, as: UTF8.self), body)
    }
  }

  static func signedRequest(_ body: [UInt8]) {
    do throws(HTTPResponse) {
      var isWithheld = false
      let fields = try UploadRequest.signedFields(body, isClientWithheld: &isWithheld)
      require(!fields.transactions.isEmpty, "an upload has transactions")
      require(
        fields.transactions.count <= UploadLimits.signedTransactions, "lists are bounded")
      check(fields.client)
    } catch {
      require([400, 422].contains(error.status), "a bad body is the client's fault")
      let answer = error.body.bytes
      require((try? JSONValue(answer)) != nil, "an answer is JSON")
      keepsSecrets(String(decoding: answer, as: UTF8.self), body)
    }
  }

  static func importLine(_ line: UnsafeRawBufferPointer) {
    let parser = ImportLineParser()
    let isGood: Void? = parser.read(line) { line in
      switch line {
      case .receipt(let upload):
        check(upload.fields)
        if let recorded = upload.recorded {
          require((try? JSONValue(recorded.bytes)) != nil, "a recorded reply is JSON")
        }
      case .transactions(let fields, _):
        require(!fields.transactions.isEmpty, "an upload has transactions")
        require(
          fields.transactions.count <= UploadLimits.signedTransactions, "lists are bounded")
        check(fields.client)
      case .notification: break
      }
    }
    require((isGood == nil) == !parser.problems.isEmpty, "a line is read, or has problems")
    let words = (parser.problems + parser.warnings).map { "\($0.message)" }
    keepsSecrets(words.joined(separator: "\n"), Array(line))
  }

  private static func check(_ fields: UploadFields) {
    require(
      (try? Base64.decode(fields.receiptText)) == fields.receiptFile, "the receipt is its base64")
    require(!fields.receiptText.isEmpty, "an upload has a receipt")
    check(fields.client)
  }

  private static func check(_ client: ClientFields) {
    for identifier in [client.userIdentifier, client.identifierForVendor] {
      require(
        identifier?.unicodeScalars.count ?? 0 <= UploadLimits.identifierCharacters,
        "identifiers are short")
    }
    if let country = client.countryCode {
      require(country.utf8.count == 2 && country == country.uppercased(), "countries are codes")
    }
    if let metadata = client.metadata {
      let value = try? JSONValue(metadata)
      require(value != nil, "metadata is JSON")
      require(metadata.count <= UploadLimits.metadataBytes, "metadata is small")
    }
  }

  private static func text(of fields: UploadFields) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("receipt")
    fields.receiptText.withUnsafeBytes { writer.string($0) }
    for (key, text) in [
      ("country_code", fields.client.countryCode),
      ("identifier_for_vendor", fields.client.identifierForVendor),
      ("user_identifier", fields.client.userIdentifier),
    ] {
      guard let text else { continue }
      writer.key(key)
      writer.string(text)
    }
    switch fields.client.address {
    case .absent: break
    case .withheld:
      writer.key("ip_address")
      writer.null()
    case .given(let address):
      writer.key("ip_address")
      writer.string(address)
    }
    if let metadata = fields.client.metadata {
      writer.key("metadata")
      metadata.withUnsafeBytes { writer.raw($0) }
    }
    writer.endObject()
    return writer.bytes
  }

  private static func same(_ left: UploadFields, _ right: UploadFields) -> Bool {
    left.receiptText == right.receiptText && left.receiptFile == right.receiptFile
      && left.client == right.client
  }

  /// No answer repeats what a client sent as its receipt, its user or its address.
  private static func keepsSecrets(_ answer: String, _ body: [UInt8]) {
    guard case .object(let members)? = try? JSONValue(body) else { return }
    for member in members where ["receipt", "user_identifier", "ip_address"].contains(member.key) {
      // Shorter texts may stand in the answer's own words.
      guard let text = member.value.stringValue, text.utf8.count >= 16 else { continue }
      require(!contains(Array(answer.utf8), Array(text.utf8)), "an answer repeats no secret")
    }
  }

  private static func contains(_ text: [UInt8], _ part: [UInt8]) -> Bool {
    guard text.count >= part.count else { return false }
    return (0...text.count - part.count).contains { text[$0...].starts(with: part) }
  }
}
