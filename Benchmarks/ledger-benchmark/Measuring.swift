// Time and output of the benchmarks.
import Glibc

/// Seconds of a clock that never goes back.
func now() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Writes one line: a JSON object of numbers.
func report(_ figures: KeyValuePairs<String, Double>) {
  print("{" + figures.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}")
}

/// Writes one line: a JSON object with a series for each name.
func report(_ series: KeyValuePairs<String, [Double]>) {
  let members = series.map { name, values in
    "\"\(name)\":[" + values.map { "\($0)" }.joined(separator: ",") + "]"
  }
  print("{" + members.joined(separator: ",") + "}")
}
