// The table `sale_figures`: what revenue reports read about all sales, packed into few rows.
import Revenue

/// Writes the figures of sales, and reads all of them. Row `n` holds the figures of the sales from number
/// `n × SaleFigures.rowCapacity` on, in numerical order, without gaps.
struct SaleFiguresTable {
  private let database: Database
  private var target: RowTarget?
  private var changed: [(sale: Int, figures: SaleFigures)] = []

  init(_ database: Database) { self.database = database }

  // MARK: Writing

  /// Queues the figures of a new or changed sale.
  mutating func add(_ figures: SaleFigures, ofSale number: Int) {
    changed.append((number, figures))
  }

  /// Merges the queued figures into the existing rows.
  mutating func store(_ rows: RowWriter) throws(DatabaseError) {
    if changed.isEmpty { return }
    let capacity = SaleFigures.rowCapacity
    changed.sort { $0.sale < $1.sale }
    let select = try database.prepare("SELECT figures FROM sale_figures WHERE id = ?")
    var row: [UInt8] = []
    var start = 0
    while start < changed.count {
      let number = changed[start].sale / capacity
      select.bind(1, number)
      row.removeAll(keepingCapacity: true)
      if try select.step() { row.append(contentsOf: select.bytes(0)) }
      select.reset()
      while start < changed.count, changed[start].sale / capacity == number {
        let offset = (changed[start].sale - number * capacity) * SaleFigures.byteCount
        precondition(offset <= row.count, "a gap in the figures of sales")
        if offset == row.count {
          row.append(contentsOf: repeatElement(0, count: SaleFigures.byteCount))
        }
        let figures = changed[start].figures
        row.withUnsafeMutableBytes { bytes in
          if let first = bytes.baseAddress { figures.write(to: first + offset) }
        }
        start += 1
      }
      try write(row, number, rows)
    }
    changed.removeAll(keepingCapacity: true)
  }

  /// Writes the figures of all sales into an empty table.
  mutating func storeAll(
    _ sales: SaleStore, _ rows: RowWriter, currency: (Currency) -> Symbol
  ) throws(DatabaseError) {
    let capacity = SaleFigures.rowCapacity
    let count = sales.sales.count
    var row: [UInt8] = []
    var first = 0
    while first < count {
      let end = min(count, first + capacity)
      row = Array(repeating: 0, count: (end - first) * SaleFigures.byteCount)
      row.withUnsafeMutableBytes { bytes in
        guard let start = bytes.baseAddress else { return }
        for place in first..<end {
          let sale = sales.sales[place]
          precondition(sale.id == place, "a sale's number is not its index")
          SaleFigures(sale, currency: sale.price.map { currency($0.currency) } ?? .none)
            .write(to: start + (place - first) * SaleFigures.byteCount)
        }
      }
      try write(row, first / capacity, rows)
      first = end
    }
  }

  private mutating func write(
    _ row: [UInt8], _ number: Int, _ rows: RowWriter
  ) throws(DatabaseError) {
    if target == nil {
      target = try rows.target("INSERT OR REPLACE INTO sale_figures", valueCount: 2)
    }
    guard let target else { return }
    rows.begin(target)
    rows.add(number)
    withText(row) { rows.add(blob: $0) }
    try rows.end()
  }

  // MARK: Reading

  /// Calls `body` with the figures of each sale, by number, and never for a sale that does not exist. Returns false
  /// if the table does not match the sales, possibly only after the last call.
  static func forEach(
    in database: Database, _ body: (_ sale: Int, SaleFigures) throws -> Void
  ) throws -> Bool {
    let saleCount = Int(try database.integer("SELECT max(id) + 1 FROM sales") ?? 0)
    let rows = try database.prepare("SELECT id, figures FROM sale_figures ORDER BY id")
    var count = 0
    while try rows.step() {
      let bytes = rows.bytes(1)
      let rowCount = bytes.count / SaleFigures.byteCount
      guard Int(rows.integer(0)) * SaleFigures.rowCapacity == count,
        rowCount * SaleFigures.byteCount == bytes.count,
        rowCount <= SaleFigures.rowCapacity, count + rowCount <= saleCount,
        let start = bytes.baseAddress
      else { return false }
      for index in 0..<rowCount {
        guard let figures = SaleFigures(start + index * SaleFigures.byteCount)
        else { return false }
        try body(count + index, figures)
      }
      count += rowCount
    }
    return count == saleCount
  }
}
