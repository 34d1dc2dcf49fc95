// Mapping files of accounts, and the names that other programs read (settlement rule S15).
import Revenue
import TestSupport
import Testing

@Suite struct EntryAccountsTests {
  @Test func aMappingReplacesWhatItNames() throws {
    let accounts = try EntryAccounts(
      parsing:
        "# ours\r\n\nbank = Assets:Bank:Giro Eins # the new one\n input_tax=Liabilities:MwSt\n")
    expectEqual(accounts.texts, ["bank=Assets:Bank:Giro Eins", "input_tax=Liabilities:MwSt"])
    expectEqual(accounts[.bank], "Assets:Bank:Giro Eins")
    expectEqual(accounts[.sales], "Income:Apple:Sales")
  }

  @Test func theUsualNameIsNoChange() throws {
    expectEqual(try EntryAccounts(parsing: "bank = Assets:Bank\n").texts, [])
  }

  private static let names =
    "receivable, bank, sales, refunds, apps, unseen, differences, kept, unsettled, withheld, input_tax, "
    + "adjustments, conversion"

  @Test(
    arguments: [
      ("bank Assets:Bank", "line 1: is not a name, '=' and an account"),
      ("# x\nbanks = A:B", "line 2: 'banks' is not one of \(names)"),
      ("Bank = A:B", "line 1: 'Bank' is not one of \(names)"),
      ("= A:B", "line 1: '' is not one of \(names)"),
      ("bank = A:B\n\nbank = A:C", "line 3: 'bank' is named twice"),
      ("bank =", "line 1: 'bank' has no account"),
      ("bank = # none", "line 1: 'bank' has no account"),
      ("bank = A:\u{1}B", "line 1: the account of 'bank' has a control character"),
      ("bank = A:B\tC", "line 1: the account of 'bank' has a control character"),
      ("bank = A:\u{2028}B", "line 1: the account of 'bank' has a control character"),
    ])
  func aMappingIsRefusedWithItsLine(_ text: String, _ message: String) {
    let error = #expect(throws: EntryAccountsError.self) { try EntryAccounts(parsing: text) }
    expectEqual(error?.description, message)
  }

  @Test(
    arguments: [
      ("Assets:Bank", true, true), ("Assets:Bank:2-Giro", true, true),
      ("Assets:Übertrag", true, true), ("Income:日本", true, false), ("assets:bank", true, false),
      ("Vermögen:Bank", true, false), ("Assets", true, false), ("Assets:Giro Eins", true, false),
      ("Assets:bank", true, false), ("Assets:-", true, false), ("Assets:A_B", true, false),
      ("Assets::Bank", false, false), ("Assets:", false, false), ("Assets:A  B", false, false),
      ("(Assets:Bank)", false, false), ("[Assets:Bank]", false, false), ("* Bank", false, false),
      ("! Bank", false, false), ("Assets:A ;b", false, false),
      ("A\u{A0}\u{A0}B", false, false), ("A \u{A0}B", false, false), ("A\u{3000}B", false, false),
    ])
  func aFormatTakesTheNamesThatItsProgramsRead(
    _ name: String, _ byHledger: Bool, _ byBeancount: Bool
  ) throws {
    let accounts = try EntryAccounts(parsing: "bank = \(name)")
    expectEqual(accounts.unreadable(in: .hledger), byHledger ? nil : name)
    expectEqual(accounts.unreadable(in: .beancount), byBeancount ? nil : name)
  }
}
