// What an answer that is not the wanted one means.

/// The kind of error and its cause in words.
struct S3Refusal: Equatable {
  let kind: ObjectStoreError.Kind
  /// Has the status and the store's error code; starts with a lower-case letter.
  let cause: String

  init(_ answer: S3Answer, signedRegion: String) {
    let document = S3ErrorDocument(answer.body)
    let code = document?.code
    let shown = "the store answers \(answer.status)" + (code.map { " \($0)" } ?? "")
    kind = Self.kind(status: answer.status, code: code)
    let region = answer.region ?? document?.region
    switch (kind, code) {
    case (.noBucket, _) where region != nil && region != signedRegion:
      cause = "\(shown): the bucket is in the region \(region ?? "")"
    case (.noBucket, "NoSuchBucket"): cause = "\(shown): there is no such bucket"
    case (.noBucket, "InvalidBucketName"): cause = "\(shown): the bucket cannot have this name"
    case (.noBucket, _): cause = "\(shown): the bucket is elsewhere; check region and endpoint"
    case (.denied, "RequestTimeTooSkewed"): cause = "\(shown): this machine's clock is wrong"
    case (.denied, "SignatureDoesNotMatch"): cause = "\(shown): the secret access key is wrong"
    case (.denied, "InvalidAccessKeyId"): cause = "\(shown): the access key is unknown"
    case (.denied, "ExpiredToken"): cause = "\(shown): the credentials have expired"
    case (.denied, "AccessDenied") where answer.status == 403:
      cause =
        "\(shown): the credentials do not allow this; they need to read, write, delete and list"
    case (.unexpected, _) where answer.status == 404:
      cause = "\(shown), and does not say what is missing; check the endpoint"
    case (.unexpected, _) where answer.status == 501:
      cause = "\(shown): it cannot do what a copy needs"
    default: cause = shown
    }
  }

  private static func kind(status: Int, code: String?) -> ObjectStoreError.Kind {
    switch code {
    case "NoSuchBucket", "InvalidBucketName", "AuthorizationHeaderMalformed",
      "IllegalLocationConstraintException", "PermanentRedirect", "TemporaryRedirect":
      return .noBucket
    case "AccessDenied", "ExpiredToken", "InvalidToken", "TokenRefreshRequired",
      "InvalidAccessKeyId", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "AccountProblem":
      return .denied
    case "QuotaExceeded", "XMinioStorageFull", "InsufficientStorage": return .full
    // The last comes with status 400: the connection was idle for too long.
    case "SlowDown", "ServiceUnavailable", "InternalError", "ConditionalRequestConflict",
      "OperationAborted", "RequestTimeout":
      return .unavailable
    default: break
    }
    switch status {
    case 301, 302, 307, 308: return .noBucket
    case 401, 403: return .denied
    case 408, 409, 425, 429: return .unavailable
    case 501, 505: return .unexpected
    case 507: return .full
    case 500...599: return .unavailable
    default: return .unexpected
    }
  }
}
