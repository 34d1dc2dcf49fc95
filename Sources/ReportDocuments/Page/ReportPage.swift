// A page about the revenue of some days: its frame and the order of its sections.
import Base
import Ledger
package import Projections
import Revenue

/// One HTML file that needs nothing else: no network, no scripts, no other file.
package struct ReportPage {
  package let figures: PageFigures

  /// Computes the figures of a page, all from one state of the projections.
  /// - Parameter older: the state since which changes in ended months are shown; nil shows none.
  package init(
    _ request: PageRequest, _ basis: PageBasis, from database: Database, since older: Database?
  ) throws {
    figures = try Report.inOneState(database) {
      try PageFigures(request, basis, from: database, since: older)
    }
  }

  /// The number of events behind the page.
  package var size: Int { figures.head.size }

  /// Whether its days have no entries.
  package var isEmpty: Bool { figures.places.rows.isEmpty }

  /// The newest month with an entry under a report's filters; nil if there is none.
  package static func newestMonth(
    _ report: ReportRequest, from database: Database
  ) throws -> PagePeriod? {
    var report = report
    (report.from, report.to) = (nil, nil)
    (report.dimensions, report.granularity) = ([.period], .month)
    let collector = PageRowCollector(report.dimensions)
    try Report.write(report, from: database, to: collector)
    return collector.result.rows.map { $0.labels[0] }.max().flatMap(PagePeriod.init(parsingMonth:))
  }

  /// The summary of its revenue: exceptions, rates, trust.
  package var summary: ReportSummary { figures.places.summary }

  /// The page, as UTF-8.
  package var bytes: [UInt8] {
    var html = HTML()
    PageWriter(figures: figures).write(to: &html)
    return html.bytes
  }
}

/// Writes a page.
struct PageWriter {
  let figures: PageFigures

  /// How many currencies have charts; the others follow in collapsed tables.
  static let currenciesMax = 6
  /// How many countries and products are named; the rest are summed.
  static let namesMax = 15

  var period: PagePeriod { figures.request.period }

  /// The sections: the name of each, its heading, and its writer.
  private var sections: [(id: String, title: String, write: (inout HTML) -> Void)] {
    [
      ("figures", "Key figures", keyFigures), ("time", "Over time", time),
      (
        "places",
        figures.hasSeveralApps ? "By app, country and product" : "By country and product", places
      ),
      ("returns", "Returns and reversals", returns),
      ("subscriptions", "Subscriptions", subscriptions),
    ]
      + (figures.settlement == nil ? [] : [("settlement", "From gross to bank", settlement)])
      + [
        ("evidence", "What the figures rest on", evidence),
        ("exceptions", "Exceptions", exceptions),
      ]
      + (figures.changes == nil ? [] : [("changes", "Changes in ended months", changes)])
      + [("facts", "Where the figures come from", facts)]
  }

  func write(to html: inout HTML) {
    html.element("html", ["lang": "en"]) { html in
      html.element("head") { head(to: &$0) }
      html.element("body") { html in
        html.element("a", ["class": "skip", "href": "#figures"], text: "Skip to the figures")
        header(to: &html)
        html.element("main") { html in
          for (id, title, write) in sections {
            html.element("section", ["aria-labelledby": id]) { html in
              html.element("h2", ["id": id], text: title)
              write(&html)
            }
          }
        }
      }
    }
  }

  private func head(to html: inout HTML) {
    html.void("meta", ["charset": "utf-8"])
    html.void(
      "meta",
      [
        "http-equiv": "Content-Security-Policy",
        "content": "default-src 'none'; style-src '\(PageStyle.source)'; base-uri 'none'; "
          + "form-action 'none'",
      ])
    html.void("meta", ["name": "viewport", "content": "width=device-width, initial-scale=1"])
    html.void("meta", ["name": "color-scheme", "content": "light dark"])
    html.void("meta", ["name": "referrer", "content": "no-referrer"])
    html.element(
      "title", text: "Revenue, \(period.title) – \(figures.basis.ledger.origin)")
    html.element("style") { $0.raw(PageStyle.sheet) }
  }

  private func header(to html: inout HTML) {
    html.element("header") { html in
      html.element("p", ["class": "origin"], text: figures.basis.ledger.origin)
      html.element("h1", text: "Revenue, \(period.title)")
      html.element("p", ["class": "lead"], text: lead)
      html.element(
        "p", ["class": "note"],
        text:
          "The amounts are what customers were charged, as reported by the apps and the App Store. "
          + "They are not what Apple pays out.")
    }
    html.element("nav", ["aria-label": "Contents"]) { html in
      html.element("ul") { html in
        for (id, title, _) in sections {
          html.element("li") { $0.element("a", ["href": "#\(id)"], text: title) }
        }
      }
    }
  }

  /// The scope of the page: days, zone, currency, environment, filters.
  private var lead: String {
    let report = figures.request.report
    var parts = ["\(period.first) to \(period.last)", "days in \(report.zone.name)"]
    if let currency = report.reportingCurrency { parts.append("converted to \(currency)") }
    parts.append(environments)
    if report.refunds == .saleDate { parts.append("returns on the date of the sale") }
    return (parts + filters).joined(separator: " · ")
  }

  private var environments: String {
    guard let names = figures.request.report.environments else {
      return "real and test purchases (all environments)"
    }
    switch names {
    case ["Production"]: return "real purchases (Production)"
    case ["Sandbox"]: return "test purchases (Sandbox)"
    default: return "purchases in \(names.joined(separator: ", "))"
    }
  }

  /// What the page is limited to.
  private var filters: [String] {
    let filter = figures.request.report.filter
    let parts: [(String, String, [String]?)] = [
      ("app", "apps", filter.apps), ("product", "products", filter.products?.map(\.pattern)),
      (
        "country", "countries",
        filter.countries?.map { code in
          CountryNames.name(code).map { code == "ZZ" ? "unknown" : $0 } ?? code
        }
      ), ("kind of sale", "kinds of sales", filter.kinds?.map { "\($0.word)" }),
    ]
    return parts.compactMap { one, several, names in
      guard let names, !names.isEmpty else { return nil }
      let shown = names.prefix(Self.filtersNamed).joined(separator: ", ")
      let more = names.count - Self.filtersNamed
      return "\(names.count == 1 ? one : several) \(shown)\(more > 0 ? " and \(more) more" : "")"
    }
  }

  /// How many names of a filter the lead shows.
  private static let filtersNamed = 10

  /// Whether the page is limited to some apps, products, countries or kinds of sales.
  var hasFilters: Bool { !figures.request.report.filter.isEmpty }
}
