// Price lists and exchange rates in CSV.
@testable import Intake
@testable import Base
@testable import Ledger

extension FuzzTarget {
  static let declarations = FuzzTarget(
    name: "declarations", inputByteCountMax: 2048,
    words: [
      "product_id,country_code,currency,price,effective_from\n", "date,base,quote,rate\n",
      "Date,USD,JPY,\n", "\"\"", "\r\n", "\u{feff}", "2026-01-02", "9.99", "EUR", "N/A", "0.00001",
      "999999999999999999", ",,,",
    ],
    seeds: {
      let texts = [
        "product_id,country_code,currency,price,effective_from\ncoins,DE,EUR,1.99,2026-01-01\n"
          + "\"co,\"\"ins\",,USD,0.99,2026-02-01\r\n",
        "price,currency,country_code,product_id,effective_from\n1,JPY,JP,a,2026-01-01",
        "date,base,quote,rate\n2026-01-02,EUR,USD,1.1234\n2026-01-03,EUR,USD,1.2\n",
        "Date,USD,JPY,CYP,\n2026-01-02,1.1,150.5,N/A,\n2026-01-01,1.2,151,,\n",
        "a,b\n\"unclosed", "a\rb", "\u{feff}date,base,quote,rate\n",
      ]
      return texts.map { Array($0.utf8) }
    },
    check: { input in
      let bytes = Array(input)
      DeclarationCheck.records(bytes)
      DeclarationCheck.declaration { () throws(DeclarationError) in
        try PriceListFile.read(bytes, source: "prices.csv")
      }
      DeclarationCheck.declaration { () throws(DeclarationError) in
        try RateListFile.read(bytes, source: "rates.csv")
      }
    })
}

private enum DeclarationCheck {
  /// Records with every cell in quotes are read as they were.
  static func records(_ bytes: [UInt8]) {
    var reader = CSVReader(bytes)
    var records: [[String]] = []
    var faultCount = 0
    while faultCount <= bytes.count {
      do throws(CSVError) {
        guard let record = try reader.next() else { break }
        records.append(record.cells)
      } catch { faultCount += 1 }
    }
    require(faultCount <= bytes.count, "a reader comes to an end")
    var text: [UInt8] = []
    for record in records {
      let cells = record.map {
        "\""
          + $0.split(separator: "\"", omittingEmptySubsequences: false)
          .joined(separator: "\"\"") + "\""
      }
      text += Array((cells.joined(separator: ",") + "\r\n").utf8)
    }
    var again = CSVReader(text)
    do throws(CSVError) {
      for record in records {
        require(try again.next()?.cells == record, "cells are read as they were written")
      }
      require(try again.next() == nil, "nothing follows")
    } catch { require(false, "what is written is read: \(error)") }
  }

  static func declaration(_ read: () throws(DeclarationError) -> Declaration) {
    do throws(DeclarationError) {
      let declaration = try read()
      require(declaration.entryCount > 0, "a declaration declares something")
      for draft in declaration.drafts {
        require((try? JSONValue(draft.data)) != nil, "an event's data is JSON")
        require(draft.data.first == 0x7B, "an event's data is an object")
      }
    } catch {
      require(!error.description.isEmpty, "refusals have causes")
      if case .lines(_, let problems, let count) = error {
        require(problems.count <= 100 && count >= problems.count, "long lists are cut")
      }
    }
  }
}
