// The library that calls the App Store and webhooks.
import Base
import CCurl

package enum HTTPClientLibrary {
  /// For example `libcurl 7.88.1`, as this system has it.
  package static var name: String {
    // The first layout of what it returns has the version already.
    let info = curl_version_info(CURLVERSION_FIRST)
    return "libcurl "
      + (info?.pointee.version.map { String(cString: $0) } ?? CryptoLibrary.unknownVersion)
  }
}
