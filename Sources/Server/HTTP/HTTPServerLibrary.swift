// The library that serves HTTP.
import Base
import CMicroHTTPD

package enum HTTPServerLibrary {
  /// For example `libmicrohttpd 0.9.75`, as this system has it.
  package static var name: String {
    "libmicrohttpd "
      + (MHD_get_version().map { String(cString: $0) } ?? CryptoLibrary.unknownVersion)
  }
}
