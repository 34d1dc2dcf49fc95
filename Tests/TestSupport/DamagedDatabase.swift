// Damage to the file of the projections.
import Foundation
package import Projections

extension Database {
  /// Overwrites the first page of a table in a database that no process has open.
  package static func damage(_ table: String, in path: String) throws {
    let (page, byteCount) = try place(of: table, in: path)
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try file.seek(toOffset: UInt64((page - 1) * byteCount))
    try file.write(contentsOf: Data(repeating: 0xFF, count: byteCount))
    try file.close()
  }

  private static func place(
    of table: String, in path: String
  ) throws -> (page: Int, byteCount: Int) {
    let database = try Database(path: path, mode: .read, followsLinks: true)
    let row = try database.prepare(
      """
      SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_master
      WHERE name = '\(table)'
      """)
    let isThere = try row.step()
    precondition(isThere, "there is no table \(table)")
    return (Int(row.integer(0)), Int(row.integer(1)))
  }
}
