// Daily exchange rates on working days: what a euro buys of each currency, wandering about its usual value.
import AppStoreAuthority
import Base
import ProgramSupport

struct RatesFile {
  let simulation: Simulation

  func write(to output: inout Output) throws(OutputError) {
    try output.write("date,base,quote,rate\n")
    let currencies = Storefronts.currencies.filter { $0.code != Storefronts.euro.code }
    var random = RandomSource(seed: simulation.seed, 60)
    var rates = currencies.map(\.microsPerEuro)
    // Sales may lie months before the first upload.
    let first = StoreTime.day(simulation.fromMs - 125 * dayMs).dayNumber
    let last = StoreTime.day(simulation.toMs - 1).dayNumber
    for day in first...last {
      // 1970-01-01 was a Thursday; 2 and 3 are a Saturday and a Sunday.
      let weekday = day % 7
      if weekday == 2 || weekday == 3 { continue }
      let date = CivilDate(dayNumber: day).description
      for (index, currency) in currencies.enumerated() {
        let usual = currency.microsPerEuro
        let step = usual / 1000 * random.within(-5...5) / 2
        rates[index] += step + (usual - rates[index]) / 40
        let rate = PriceForm.decimal(
          Int64(rates[index]), digits: rates[index] < 100_000_000 ? 4 : 2)
        try output.write("\(date),EUR,\(currency.code),\(rate)\n")
      }
    }
  }
}
