// prices.declared and rates.declared: prices and exchange rates from an operator.
package import Base

/// A price list. A later declaration does not erase an earlier one; the rules choose the entry that applies.
package struct PricesDeclared: Equatable, Sendable {
  package struct Entry: Equatable, Sendable {
    package var productID: String
    /// ISO 3166-1 alpha-2; nil applies to countries without a specific entry.
    package var countryCode: String?
    /// ISO 4217.
    package var currency: String
    /// An exact decimal.
    package var price: String
    /// `YYYY-MM-DD`; in effect from 00:00 UTC.
    package var effectiveFrom: String

    package init(
      productID: String, countryCode: String?, currency: String, price: String,
      effectiveFrom: String
    ) {
      self.productID = productID
      self.countryCode = countryCode
      self.currency = currency
      self.price = price
      self.effectiveFrom = effectiveFrom
    }
  }

  /// The name of the file that the entries came from.
  package var source: String
  /// SHA-256 of that file, in hex.
  package var sourceSHA256Hex: String
  package var entries: [Entry]

  package init(source: String, sourceSHA256Hex: String, entries: [Entry]) {
    self.source = source
    self.sourceSHA256Hex = sourceSHA256Hex
    self.entries = entries
  }

  /// The event's data.
  package var data: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("source", source)
    writer.member("source_sha256", sourceSHA256Hex)
    writer.key("entries")
    writer.beginArray()
    for entry in entries {
      writer.beginObject()
      writer.member("product_id", entry.productID)
      writer.member("country_code", ifPresent: entry.countryCode)
      writer.member("currency", entry.currency)
      writer.member("price", entry.price)
      writer.member("effective_from", entry.effectiveFrom)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
    return writer.bytes
  }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let members = try EventMembers(.pricesDeclared, data)
    source = try members.string("source")
    sourceSHA256Hex = try members.string("source_sha256")
    entries = []
    for entry in try members.objects("entries") {
      entries.append(
        Entry(
          productID: try entry.string("product_id"),
          countryCode: try entry.optionalString("country_code"),
          currency: try entry.string("currency"), price: try entry.string("price"),
          effectiveFrom: try entry.string("effective_from")))
    }
  }
}

/// Exchange rates: 1 base = rate quote.
package struct RatesDeclared: Equatable, Sendable {
  /// The rates of one day against one base.
  package struct Day: Equatable, Sendable {
    /// `YYYY-MM-DD`, a UTC day.
    package var date: String
    package var base: String
    package var rates: [Rate]

    package init(date: String, base: String, rates: [Rate]) {
      self.date = date
      self.base = base
      self.rates = rates
    }
  }

  package struct Rate: Equatable, Sendable {
    package var quote: String
    /// An exact decimal.
    package var rate: String

    package init(quote: String, rate: String) {
      self.quote = quote
      self.rate = rate
    }
  }

  /// The name of the file that the rates came from.
  package var source: String
  /// SHA-256 of that file, in hex.
  package var sourceSHA256Hex: String
  package var days: [Day]

  package init(source: String, sourceSHA256Hex: String, days: [Day]) {
    self.source = source
    self.sourceSHA256Hex = sourceSHA256Hex
    self.days = days
  }

  /// The event's data.
  package var data: [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    writer.member("source", source)
    writer.member("source_sha256", sourceSHA256Hex)
    writer.key("days")
    writer.beginArray()
    for day in days {
      writer.beginObject()
      writer.member("date", day.date)
      writer.member("base", day.base)
      writer.key("rates")
      writer.beginObject()
      for rate in day.rates {
        writer.key(rate.quote)
        writer.string(rate.rate)
      }
      writer.endObject()
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
    return writer.bytes
  }

  /// Throws `badField` if a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let members = try EventMembers(.ratesDeclared, data)
    source = try members.string("source")
    sourceSHA256Hex = try members.string("source_sha256")
    days = []
    for day in try members.objects("days") {
      let rates = try day.named("rates", \.stringValue)
      days.append(
        Day(
          date: try day.string("date"), base: try day.string("base"),
          rates: rates.map { Rate(quote: $0.name, rate: $0.value) }))
    }
  }
}
