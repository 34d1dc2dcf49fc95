// prices.declared and rates.declared: prices and exchange rates from an operator.
package import JSON

/// A price list. A later declaration does not erase an earlier one; the rules say which entry holds.
package struct PricesDeclared: Equatable, Sendable {
  package struct Entry: Equatable, Sendable {
    package var productID: String
    /// ISO 3166-1 alpha-2; nil holds for the countries that have no entry of their own.
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
    writer.key("source")
    writer.string(source)
    writer.key("source_sha256")
    writer.string(sourceSHA256Hex)
    writer.key("entries")
    writer.beginArray()
    for entry in entries {
      writer.beginObject()
      writer.key("product_id")
      writer.string(entry.productID)
      if let countryCode = entry.countryCode {
        writer.key("country_code")
        writer.string(countryCode)
      }
      writer.key("currency")
      writer.string(entry.currency)
      writer.key("price")
      writer.string(entry.price)
      writer.key("effective_from")
      writer.string(entry.effectiveFrom)
      writer.endObject()
    }
    writer.endArray()
    writer.endObject()
    return writer.bytes
  }

  /// Throws `badField` where a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let type = EventType.pricesDeclared
    let value: JSONValue
    do throws(JSONError) { value = try JSONValue(data) } catch { throw .malformed(type, error) }
    guard let source = value["source"]?.stringValue else { throw .badField(type, field: "source") }
    guard let digest = value["source_sha256"]?.stringValue else {
      throw .badField(type, field: "source_sha256")
    }
    guard let list = value["entries"]?.arrayValue else { throw .badField(type, field: "entries") }
    var entries: [Entry] = []
    for element in list {
      guard let productID = element["product_id"]?.stringValue,
        let currency = element["currency"]?.stringValue,
        let price = element["price"]?.stringValue,
        let effectiveFrom = element["effective_from"]?.stringValue
      else { throw .badField(type, field: "entries") }
      let country = element["country_code"]
      guard country == nil || country?.stringValue != nil else {
        throw .badField(type, field: "entries")
      }
      entries.append(
        Entry(
          productID: productID, countryCode: country?.stringValue,
          currency: currency, price: price, effectiveFrom: effectiveFrom))
    }
    self.init(source: source, sourceSHA256Hex: digest, entries: entries)
  }
}

/// RequestHandler rates: 1 base = rate quote.
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
    writer.key("source")
    writer.string(source)
    writer.key("source_sha256")
    writer.string(sourceSHA256Hex)
    writer.key("days")
    writer.beginArray()
    for day in days {
      writer.beginObject()
      writer.key("date")
      writer.string(day.date)
      writer.key("base")
      writer.string(day.base)
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

  /// Throws `badField` where a member is missing or violates the catalogue, `malformed` for invalid JSON.
  package init(data: JSONBytes) throws(EventError) {
    let type = EventType.ratesDeclared
    let value: JSONValue
    do throws(JSONError) { value = try JSONValue(data) } catch { throw .malformed(type, error) }
    guard let source = value["source"]?.stringValue else { throw .badField(type, field: "source") }
    guard let digest = value["source_sha256"]?.stringValue else {
      throw .badField(type, field: "source_sha256")
    }
    guard let list = value["days"]?.arrayValue else { throw .badField(type, field: "days") }
    var days: [Day] = []
    for element in list {
      guard let date = element["date"]?.stringValue, let base = element["base"]?.stringValue,
        case .object(let members) = element["rates"] ?? .null
      else { throw .badField(type, field: "days") }
      var rates: [Rate] = []
      for member in members {
        guard let rate = member.value.stringValue else { throw .badField(type, field: "days") }
        rates.append(Rate(quote: member.key, rate: rate))
      }
      days.append(Day(date: date, base: base, rates: rates))
    }
    self.init(source: source, sourceSHA256Hex: digest, days: days)
  }
}
