// Starts the program.
import Glibc
import PartitionedFold

exit(RulesProgram.run(Array(CommandLine.arguments.dropFirst())))
