// The library that compresses blocks.
import CDeflate

package enum DeflateLibrary {
  /// For example `libdeflate 1.14`: the version that this program was built with. The library does not tell its own.
  package static var name: String { "libdeflate " + LIBDEFLATE_VERSION_STRING }
}
