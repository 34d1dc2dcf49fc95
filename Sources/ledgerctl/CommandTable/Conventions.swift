// What holds for all commands, as the reference and the manual say it.

/// Paragraphs with the marks of the reference.
let programConventions = [
  "An option's value follows it as `--option value` or `--option=value`; `--` ends the options.",
  "Wrong usage is found before any data is touched: exit code 2, nothing read or written.",
  "If a file or folder inside a ledger is a symbolic link, or group or others may write to it, every command ends "
    + "with exit code 1. The path to the ledger's directory itself may contain links.",
  "`-o FILE` replaces FILE after everything is written. A FILE inside a ledger's directory is refused, also if a "
    + "link leads there.",
  "An error is one line on standard error: `ledgerctl: operation: object: cause`. It never contains a receipt, "
    + "a token or a user identifier. At most 24 characters of an invalid argument are shown. Any part of an argument, "
    + "a path included, that looks like a token, base64, a JWS or a long hexadecimal number is shown as "
    + "`[47 characters, not shown]`. The name of an existing file or folder is shown unless it looks like a token.",
  "A point in time (POINT) is a position, a day (UTC), an RFC 3339 time or the file of a "
    + "manifest: a value that holds a `/` or ends in `.json`. `replay --from` and `--until` take no manifest. Digits "
    + "of a time beyond the millisecond are ignored.",
  "Control characters in text from the data are escaped.",
  "Progress is shown on standard error if that is a terminal. `NO_COLOR` turns bold text off.",
  "If the reader of a pipe closes it, the command ends quietly. SIGINT, SIGTERM and SIGHUP end the command after it "
    + "has cleaned up; a second SIGINT or SIGTERM ends it immediately. SIGHUP stays ignored if it was, as under "
    + "`nohup`.",
]

/// Variables of the environment that the program reads.
let programEnvironment = [
  (name: "LEDGER_DIR", text: "the ledger's directory, where `--ledger` does not name it"),
  (name: "TMPDIR", text: "where temporary files go; default `/tmp`"),
  (name: "NO_COLOR", text: "if set and not empty, headings are not bold"),
  (name: "TERM", text: "`dumb` has the same effect"),
]

/// Files that the program reads or writes; what has no path of its own is in the ledger's directory.
let programFiles = [
  (name: "ledger.json", text: "the ledger's identity"),
  (name: "log/", text: "the events: the only truth"),
  (name: "config.json", text: "the settings of the server; without it defaults hold"),
  (
    name: "keys/", text: "private keys that sign checkpoints, and those of the App Store Server API"
  ),
  (name: "checkpoints/", text: "signed heads"),
  (
    name: "projections/",
    text: "what is computed from the log; it can be removed and is built again"
  ),
  (name: "snapshots/", text: "saved projections"),
  (
    name: "erasures/",
    text: "requests to erase data and what became of them; redacted lines on their way"
  ),
  (name: "webhooks/", text: "how far each webhook came"),
  (name: "/usr/share/zoneinfo", text: "the rules of time zones"),
]
