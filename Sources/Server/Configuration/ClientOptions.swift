// The App Store client's options, from the configuration.
package import AppStore

extension Configuration.AppStore {
  /// What `VerifyReceiptClient` is made with.
  package var clientOptions: VerifyReceiptOptions {
    var options = VerifyReceiptOptions()
    options.productionURL = productionURL
    options.sandboxURL = sandboxURL
    options.connectTimeoutMs = connectTimeoutMs
    options.timeoutMs = timeoutMs
    options.answerBytesMax = answerBytesMax
    options.callsMax = callsMax
    return options
  }
}
