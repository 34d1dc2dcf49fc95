// Texts that look like secrets, and texts that do not.
import Base
import Foundation
import Intake
import Testing

@Suite struct SecretTextTests {
  @Test(arguments: [
    "rlt_Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZmdoaWo",
    "--rlt_iDkK-Tzv3477hqnKujtUVTqpzrBTBTByhsWwc_nuFgk",
    "Authorization: Bearer rlt_Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZmdoaWo",
    "MIITtgYJKoZIhvcNAQcCoIITpzCCE6MCAQExCzAJBgUrDgMCGgUAMIIDVwYJKoZIhvcNAQcBoIIDSASCA0QxggNA",
    "ewoJInNpZ25hdHVyZSIgPSAiQXBkeEpkdE53UFUyckE1L2NuM2tJTzFPVGsyNWZlREthMGFhZ3l5UnZlV2xjRmxnbHY2UkY2",
    "c2FtcGxlIHJlY2VpcHQ=",
    "eyJhbGciOiJFUzI1NiIsIng1YyI6WyJNSUlFTURDQ0E3YWdBd0lCQWdJUWFQb1BsZHZwU29FSDBsQnJqRFB2OWpBS0JnZ3EifQ."
      + "eyJ0cmFuc2FjdGlvbklkIjoiMjAwMDAwMDQ4MDY2MjA2MCJ9.c2lnbmF0dXJl",
    "b7c1f0a94e2d4f7c8a1b3c5d7e9f0a1b",
    "B7C1F0A94E2D4F7C8A1B3C5D7E9F0A1B",
    "out/b7c1f0a94e2d4f7c8a1b3c5d7e9f0a1b.csv",
    // Secret access keys, the first from Amazon's documentation.
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "s3://copy/wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "https://AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY@s3.example.com",
    "/abcdef/GHIJKL/mnopqr/STUVWX/012345/abcd", "aB3/cD4/eF5/gH6/iJ7/kL8/mN9/oP0/qR1/sT2/",
  ]) func whatLooksLikeASecretIsNotShown(_ text: String) {
    #expect(SecretText.isLikely(text))
  }

  @Test(arguments: [
    "", "-", "frobnicate", "history.ndjson.gz", "2026-03-14T10:00:00.000Z", "99999999999999999999",
    "/srv/ann/projects/receipts/history-of-all-uploads-2024-11-22-production.ndjson",
    "../backups/ledger_2024_11_22_before_upgrade/checkpoints",
    "HistoryOfAllUploadsFromProduction", "0e7c2f4a-9a0b-4c5d-8e6f-112233445566",
    "exports/receipt-0e7c2f4a-9a0b-4c5d-8e6f-112233445566.json", "America/Argentina/ComodRivadavia",
    "com.example.subscriptions.professional.monthly", "--register-apps", "example.com/receipts",
    "verification.reply.environment", "receipts.example/ledger1",
    "export-2026-Q1-revenue-by-country.csv", "s3://receipts/copies/of/the/year/2026/of/all/shops",
    "Users/Anna/Receipts/History/Of/2026/Uploads/All",
  ]) func whatIsAnOrdinaryNameIsShown(_ text: String) {
    #expect(!SecretText.isLikely(text))
  }
}
