// An Excel file: a sheet of rows, one about them, perhaps one of settlement. Its errors, and the library behind it.
import Base
import CXlsxWriter
import CZlib
import Glibc
import Ledger
import Projections

/// Makes an Excel file with the library, in a temporary folder.
final class Workbook {
  /// The most rows on a sheet, including its heading.
  static let rowCountMax = 1_048_576

  /// How a cell is shown. The number is its index among the workbook's formats.
  enum CellFormat: Int, CaseIterable {
    case plain, heading, time, day, month, right, title, name, numberHeading
  }

  private let folder: TemporaryFolder
  private var workbook: UnsafeMutablePointer<lxw_workbook>?
  private let rows: UnsafeMutablePointer<lxw_worksheet>
  private let about: UnsafeMutablePointer<lxw_worksheet>
  private let settlement: UnsafeMutablePointer<lxw_worksheet>?
  private var looks: [UnsafeMutablePointer<lxw_format>?] = []
  /// The formats of amounts, by number of decimals.
  private var amounts: [UnsafeMutablePointer<lxw_format>?] = []
  private var text = SpreadsheetText()
  /// Whether sheets are made for paper, as earlier forms are not.
  private let isForPaper: Bool
  /// How many cells each sheet has.
  private var cellCounts: [Worksheet: Int] = [:]

  /// How many texts were cut to Excel's limit.
  var cutTextCount: Int { text.cutCount }

  /// - Parameters:
  ///   - name: of the first sheet.
  ///   - createdAtMs: the creation time in the file; nothing else in it depends on a clock.
  ///   - form: the version of its form.
  ///   - hasSettlement: whether there is a sheet of settlement.
  init(name: String, title: String, createdAtMs: Int64, form: Int, hasSettlement: Bool) throws {
    isForPaper = form >= 3
    let folder: TemporaryFolder
    do throws(LedgerError) { folder = try TemporaryFolder() } catch {
      throw SpreadsheetError.system(operation: "create a temporary folder", code: error.code)
    }
    self.folder = folder
    guard let made = Self.make(in: folder) else { throw Self.outOfMemory }
    guard let rows = workbook_add_worksheet(made, name),
      let about = workbook_add_worksheet(made, "About")
    else {
      lxw_workbook_free(made)
      throw Self.outOfMemory
    }
    (self.rows, self.about) = (rows, about)
    settlement = hasSettlement ? workbook_add_worksheet(made, Self.settlementName) : nil
    workbook = made
    setProperties(title, createdAtMs)
    makeLooks()
  }

  private static let fileName = "workbook.xlsx"
  private static let settlementName = "From gross to bank"

  private static func make(in folder: TemporaryFolder) -> UnsafeMutablePointer<lxw_workbook>? {
    folder.path(fileName).withCString { path in
      folder.folder.path.withCString { directory in
        var options = lxw_workbook_options()
        options.constant_memory = 1
        options.tmpdir = UnsafeMutablePointer(mutating: directory)
        return workbook_new_opt(path, &options)
      }
    }
  }

  private static let outOfMemory = SpreadsheetError.library(
    operation: "begin an Excel file", cause: "no memory, or no room for temporary files")

  deinit {
    if let workbook { lxw_workbook_free(workbook) }
  }

  private func setProperties(_ title: String, _ createdAtMs: Int64) {
    // The library treats 0 as the present, and a year has four digits.
    let seconds = min(max(createdAtMs / 1000, 315_532_800), 253_402_300_799)
    title.withCString { title in
      "Receipt Ledger".withCString { author in
        var properties = lxw_doc_properties()
        properties.title = UnsafeMutablePointer(mutating: title)
        properties.author = UnsafeMutablePointer(mutating: author)
        properties.created = time_t(seconds)
        _ = workbook_set_properties(workbook, &properties)
      }
    }
  }

  private func makeLooks() {
    for look in CellFormat.allCases where look != .numberHeading {
      guard look != .plain, let format = workbook_add_format(workbook) else {
        looks.append(nil)
        continue
      }
      switch look {
      case .plain: break
      case .heading, .numberHeading: Self.setHeading(format)
      case .time: format_set_num_format(format, "yyyy-mm-dd hh:mm:ss")
      case .day: format_set_num_format(format, "yyyy-mm-dd")
      case .month: format_set_num_format(format, "yyyy-mm")
      case .right: format_set_align(format, UInt8(LXW_ALIGN_RIGHT.rawValue))
      case .title:
        format_set_bold(format)
        format_set_font_size(format, 14)
      case .name: format_set_bold(format)
      }
      looks.append(format)
    }
    for decimals in 0...6 {
      let format = workbook_add_format(workbook)
      let zeros = decimals == 0 ? "" : "." + String(repeating: "0", count: decimals)
      if let format { format_set_num_format(format, "#,##0\(zeros)") }
      amounts.append(format)
    }
    // The last, so that the others have the numbers of earlier forms.
    let heading = isForPaper ? workbook_add_format(workbook) : nil
    if let heading {
      Self.setHeading(heading)
      format_set_align(heading, UInt8(LXW_ALIGN_RIGHT.rawValue))
    }
    looks.append(heading ?? looks[CellFormat.heading.rawValue])
  }

  private static func setHeading(_ format: UnsafeMutablePointer<lxw_format>) {
    format_set_bold(format)
    format_set_bottom(format, UInt8(LXW_BORDER_THIN.rawValue))
  }

  // MARK: Cells

  enum Worksheet { case rows, about, settlement }

  private func worksheet(_ sheet: Worksheet) -> UnsafeMutablePointer<lxw_worksheet>? {
    switch sheet {
    case .rows: rows
    case .about: about
    case .settlement: settlement
    }
  }

  /// Sets a column's width, in characters, and the default format of its cells.
  func setColumn(_ sheet: Worksheet, _ column: Int, width: Double, _ look: CellFormat = .plain) {
    let column = lxw_col_t(column)
    worksheet_set_column(worksheet(sheet), column, column, width, looks[look.rawValue])
  }

  /// Sets a column's width and the number of its decimals.
  func setColumn(_ sheet: Worksheet, _ column: Int, width: Double, decimals: Int) {
    let column = lxw_col_t(column)
    worksheet_set_column(worksheet(sheet), column, column, width, amounts[decimals])
  }

  /// Writes a text, whatever it begins with: it never becomes a formula or a link.
  func write(
    _ value: UnsafeRawBufferPointer, _ row: Int, _ column: Int, _ look: CellFormat? = nil,
    on sheet: Worksheet = .rows
  ) throws(SpreadsheetError) {
    if value.isEmpty { return }
    text.set(value)
    let format = look.flatMap { looks[$0.rawValue] }
    let result = text.bytes.withUnsafeBytes { bytes in
      worksheet_write_string(
        worksheet(sheet), lxw_row_t(row), lxw_col_t(column),
        bytes.baseAddress?.assumingMemoryBound(to: CChar.self), format)
    }
    try wrote(result, "a text", on: sheet)
  }

  func write(
    _ value: Double, _ row: Int, _ column: Int, _ look: CellFormat? = nil,
    on sheet: Worksheet = .rows
  ) throws(SpreadsheetError) {
    let format = look.flatMap { looks[$0.rawValue] }
    let result = worksheet_write_number(
      worksheet(sheet), lxw_row_t(row), lxw_col_t(column), value, format)
    try wrote(result, "a number", on: sheet)
  }

  /// Writes an amount with this many decimals.
  func write(
    _ value: Double, decimals: Int, _ row: Int, _ column: Int, on sheet: Worksheet = .rows
  ) throws(SpreadsheetError) {
    let result = worksheet_write_number(
      worksheet(sheet), lxw_row_t(row), lxw_col_t(column), value, amounts[decimals])
    try wrote(result, "an amount", on: sheet)
  }

  func write(_ value: Bool, _ row: Int, _ column: Int) throws(SpreadsheetError) {
    let result = worksheet_write_boolean(
      rows, lxw_row_t(row), lxw_col_t(column), value ? 1 : 0, nil)
    try wrote(result, "a truth value", on: .rows)
  }

  private func wrote(
    _ result: lxw_error, _ what: String, on sheet: Worksheet
  ) throws(SpreadsheetError) {
    try check(result, "write \(what)")
    cellCounts[sheet, default: 0] += 1
  }

  private func check(_ result: lxw_error, _ operation: String) throws(SpreadsheetError) {
    guard result != LXW_NO_ERROR else { return }
    // The error of the library's zip part if a number does not fit in 32 bits.
    if result == LXW_ERROR_ZIP_BAD_ZIP_FILE { throw .tooLarge }
    let cause = lxw_strerror(result).map { String(cString: $0) } ?? "error \(result.rawValue)"
    throw .library(operation: operation, cause: cause)
  }

  /// Leaves out on paper what is to the right of a sheet's first columns.
  func print(_ sheet: Worksheet, rowCount: Int, columnCount: Int) {
    _ = worksheet_print_area(
      worksheet(sheet), 0, 0, lxw_row_t(max(rowCount - 1, 0)), lxw_col_t(columnCount - 1))
  }

  // MARK: Charts

  /// Draws stacked columns on the sheet of settlement, from a table whose first column has their names.
  /// - Parameters:
  ///   - rows: those of the table.
  ///   - colors: that of each part, from the bottom; nil is not seen.
  ///   - first: the column of the lowest parts; the next ones follow.
  func drawColumns(
    _ title: String, rows: Range<Int>, colors: [UInt32?], first: Int, at column: Int
  ) throws {
    guard let settlement,
      let chart = workbook_add_chart(workbook, UInt8(LXW_CHART_COLUMN_STACKED.rawValue))
    else {
      throw SpreadsheetError.library(operation: "draw a chart", cause: "no memory")
    }
    let (top, bottom) = (lxw_row_t(rows.lowerBound), lxw_row_t(rows.upperBound - 1))
    for (place, color) in colors.enumerated() {
      let series = chart_add_series(chart, nil, nil)
      let values = lxw_col_t(first + place)
      chart_series_set_categories(series, Self.settlementName, top, 0, bottom, 0)
      chart_series_set_values(series, Self.settlementName, top, values, bottom, values)
      var fill = lxw_chart_fill(color: color ?? 0, none: color == nil ? 1 : 0, transparency: 0)
      chart_series_set_fill(series, &fill)
    }
    chart_set_series_gap(chart, 40)
    chart_title_set_name(chart, title)
    chart_legend_set_position(chart, UInt8(LXW_CHART_LEGEND_NONE.rawValue))
    var options = lxw_chart_options()
    (options.x_scale, options.y_scale) = (1.5, 1.25)
    try title.withCString { text in
      options.description = UnsafeMutablePointer(mutating: text)
      try check(
        worksheet_insert_chart_opt(settlement, top - 1, lxw_col_t(column), chart, &options),
        "draw a chart")
    }
  }

  // MARK: Finishing

  /// Finishes the file and passes on its bytes.
  /// - Parameters:
  ///   - rowCount: the rows of the first sheet with their heading, which stays visible.
  ///   - columnCount: its columns.
  func finish(
    rowCount: Int, columnCount: Int, _ sink: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    worksheet_freeze_panes(rows, 1, 0)
    if isForPaper { prepareToPrint() }
    if columnCount > 0 {
      let (lastRow, lastColumn) = (lxw_row_t(max(rowCount - 1, 0)), lxw_col_t(columnCount - 1))
      worksheet_autofilter(rows, 0, 0, lastRow, lastColumn)
      // Numbers of sales and exact amounts are texts on purpose.
      var range = [CChar](repeating: 0, count: 64)
      lxw_rowcol_to_range(&range, 0, 0, lastRow, lastColumn)
      worksheet_ignore_errors(rows, UInt8(LXW_IGNORE_NUMBER_STORED_AS_TEXT.rawValue), range)
      worksheet_ignore_errors(about, UInt8(LXW_IGNORE_NUMBER_STORED_AS_TEXT.rawValue), "A1:Z999")
    }
    let open = workbook
    workbook = nil
    try check(workbook_close(open), "write an Excel file")
    let file: StorageFile
    let byteCount: Int
    do throws(LedgerError) {
      file = try folder.folder.openFile(Self.fileName, .readOnly)
      byteCount = try file.sizeBytes()
    } catch { throw Self.unreadable(error) }
    // A full disk does not stop the library: it continues with what it could write.
    let cells = try? SpreadsheetCells(byteCount: byteCount) {
      try Self.read(file, into: $0, at: $1)
    }
    guard let cells, cells.rows.cellCount == cellCounts[.rows] ?? 0,
      cells.about.cellCount == cellCounts[.about] ?? 0,
      cells.settlement?.cellCount ?? 0 == cellCounts[.settlement] ?? 0
    else {
      throw SpreadsheetError.library(
        operation: "write an Excel file", cause: "cells are missing; is there room in TMPDIR?")
    }
    try pass(file, to: sink)
  }

  /// A4 across, as wide as the paper, with the heading on each page.
  private func prepareToPrint() {
    _ = worksheet_repeat_rows(rows, 0, 0)
    for sheet in [rows, about, settlement].compactMap(\.self) {
      worksheet_set_paper(sheet, 9)
      worksheet_set_landscape(sheet)
      worksheet_fit_to_pages(sheet, 1, 0)
      _ = worksheet_set_footer(sheet, "&L&F&C&A&R&P / &N")
    }
  }

  private func pass(
    _ file: StorageFile, to sink: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    defer { buffer.deallocate() }
    var offset = 0
    while true {
      let count = try Self.read(file, into: buffer, at: offset)
      if count == 0 { return }
      try sink(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      offset += count
    }
  }

  private static func read(
    _ file: StorageFile, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(SpreadsheetError) -> Int {
    do throws(LedgerError) { return try file.read(into: buffer, offsetBytes: offset) } catch {
      throw unreadable(error)
    }
  }

  private static func unreadable(_ error: LedgerError) -> SpreadsheetError {
    .system(operation: "read an Excel file", code: error.code)
  }
}

// MARK: - Errors

/// A failure while an Excel file is made. No file is then put in place.
package enum SpreadsheetError: ReportableError, Equatable, CustomStringConvertible {
  /// The report has more rows than a sheet holds.
  case tooManyRows
  /// A part of the file would exceed its maximum size.
  case tooLarge
  /// A system call failed, with its `errno`.
  case system(operation: String, code: Int32)
  /// The library failed, with its number and words.
  case library(operation: String, cause: String)

  package var description: String {
    switch self {
    case .tooManyRows:
      "more than 1,048,575 rows, which is what an Excel sheet holds below its heading; "
        + "choose fewer days with --from and --to, or write CSV"
    case .tooLarge:
      "more than 4 GiB of rows, which is what an Excel file can hold; "
        + "choose fewer days with --from and --to, or write CSV"
    case .system(let operation, let code): "\(operation): \(systemErrorText(code))"
    case .library(let operation, let cause): "\(operation): \(cause)"
    }
  }
}

// MARK: - Libraries

/// The library behind spreadsheets.
package enum SpreadsheetLibrary {
  /// The version of the files' form, for manifests.
  package static let form = ReportLayout.currentSpreadsheetForm

  /// For example `libxlsxwriter 1.1.4`.
  package static var name: String { "libxlsxwriter " + text(lxw_version()) }

  /// Everything that determines the bytes of a file, for example `libxlsxwriter 1.1.4, zlib 1.2.13`: other versions may
  /// write other bytes for the same rows.
  package static var versions: String { name + ", zlib " + text(zlibVersion()) }

  private static func text(_ version: UnsafePointer<CChar>?) -> String {
    version.map { String(cString: $0) } ?? "of an unknown version"
  }
}
