// The library that reads compressed import files.
import Base
import CZlib

package enum GzipLibrary {
  /// For example `zlib 1.2.13`, as this system has it.
  package static var name: String {
    "zlib " + (zlibVersion().map { String(cString: $0) } ?? CryptoLibrary.unknownVersion)
  }
}
