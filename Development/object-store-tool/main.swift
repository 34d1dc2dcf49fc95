// Asks a store of objects from the command line, for tests of what replication is built on.
import Base
import Glibc
import ProgramSupport
import Replication

let help = """
  Usage: object-store-tool COMMAND --target TARGET [options]

    put --key K --file F      stores a file, replacing an object
    create --key K --file F   stores a file unless the key is taken; says `stored` or `exists`
    get --key K               writes the object to standard output; exit code 3 if there is none
    contains --key K          says `yes` or `no`
    delete --key K            deletes the object if there is one
    list [--prefix P] [--after K]
                              all objects, a line each: size, tab, key
    probe                     tries whether the store is fit for replication
    race --races N [--pairs P]
                              two writers create the same key, N times, P pairs of them at once (default 8)

  TARGET is s3://BUCKET/PREFIX or file:///PATH. A bucket needs --credentials FILE, in the form of
  ~/.aws/credentials, and takes --endpoint URL and --region NAME.

  Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such object.

  """

/// Not a failure, but another exit code.
struct NoObject: Error {}

func run(_ words: [String]) throws {
  guard let command = words.first else { throw UsageError(message: "the command is missing") }
  let arguments = try Arguments(
    words.dropFirst(),
    valued: [
      "--target", "--endpoint", "--region", "--credentials", "--key", "--file", "--prefix",
      "--after", "--races", "--pairs",
    ])
  let call = StoreCall(try StoreOptions(arguments), arguments)
  switch command {
  case "put": try call.put()
  case "create": try call.create()
  case "get": try call.get()
  case "contains": try call.contains()
  case "delete": try call.delete()
  case "list": try call.list()
  case "probe": try call.probe()
  case "race": try call.race()
  default: throw UsageError(message: "unknown command '\(command)'")
  }
}

var isMissing = false
let code = Program.run("object-store-tool", help: help) { words in
  do { try run(words) } catch is NoObject { isMissing = true }
}
exit(isMissing ? 3 : code)
