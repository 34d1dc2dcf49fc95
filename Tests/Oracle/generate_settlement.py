# Apple's reports of a ledger's lines, in each form, with faults planted (settlement rules, S5, S6, S10).
import random

from generate_settlement_plants import PLANTS, REPORTED, Sold
from generate_settlement_sales import FIRST, PLACES, PRODUCTS, REGIONS, tier
from settlement_values import MONTH_NAMES, amount_text, micros, month_name, month_span
from settlement_writing import detailed, financial, list_by_country, overview

SHARES = (70, 85)
MODES = ("detailed", "single", "regional")
# A form for each month, in turn.
MIXED = "mixed"


class Reports:
    """Draws Apple's files of a ledger's lines, in one of the three forms, or in all."""

    def __init__(self, seed, mode, lines):
        self.random = random.Random(f"{seed} {mode}")
        self.mode = mode
        # Units by what Apple sold; then the rows of each month.
        self.sold = {}
        self.rows = {FIRST + month: [] for month in range(REPORTED)}
        for line in lines:
            if not line.product.startswith("plant."):
                self._settle(line)
        for one, units in self.sold.items():
            while units:
                part = self.random.randint(1, units) if self.chance(0.1) else units
                self._add(one, part)
                units -= part
        for plant in PLANTS.values():
            for one, units, cells in plant.sold():
                self._add(one, units, **cells)
        for rows in self.rows.values():
            self.random.shuffle(rows)

    def chance(self, part):
        return self.random.random() < part

    def _add(self, one, units, **cells):
        if one.month in self.rows:
            self.rows[one.month].append(one.row(units, **cells))

    def _settle(self, line):
        """What Apple says of a line: mostly the same, sometimes later, earlier, otherwise or nothing."""
        choice, pick = self.random.random(), self.random.choice
        if line.product == PRODUCTS[0]:
            choice *= 0.4
        currency = PLACES[line.country][1]
        price = line.price
        if price is None:
            usual = line.product in PRODUCTS
            price = tier(line.product, currency) if usual else 1_000_000
        values = {"product": line.product, "country": line.country, "price": price,
                  "currency": line.currency or currency, "is_return": line.line == "Return"}
        month, day = line.month, line.day + pick([0, 0, 0, 0, 0, 0, 1, -1])
        first, _ = month_span(line.month)
        if line.day < first + 2 and self.chance(0.3):
            month, day = month - 1, first - 1
        elif choice < 0.07:
            month += 1
        elif choice < 0.1:
            month += 2
        elif choice < 0.12:
            month += 3
        elif choice < 0.15:
            return
        elif choice < 0.17:
            values["price"] = price + 1_000_000
        elif choice < 0.18:
            values["currency"] = "GBP" if values["currency"] != "GBP" else "USD"
        elif choice < 0.19:
            values["country"] = pick(["DE", "FR", "AT", *PLACES])
        elif choice < 0.2:
            values["product"] = pick(PRODUCTS)
        elif choice < 0.21:
            values["kind"] = pick(["1", "1F", "F1", "7"])
        share = SHARES[line.position % 5 == 0]
        one = Sold(month, day, share=share, **{"kind": pick(["IA1", "IAY", "IAY", "FI1"])} | values)
        self.sold[one] = self.sold.get(one, 0) + line.units

    def form(self, month):
        return MODES[month % len(MODES)] if self.mode == MIXED else self.mode

    def files(self):
        """{name: text} of the files that count, in the order of their months."""
        found = {}
        for month, rows in self.rows.items():
            name, form = file_name(month), self.form(month)
            if form == "detailed":
                found[f"FINANCE_DETAIL_{name}_Z1.txt"] = detailed(month_name(month), *rows)
            elif form == "single":
                found[f"{name}_ZZ.txt"] = financial(month_name(month), *rows, totals=totals(rows))
            else:
                for region in REGIONS:
                    text = self.region(month, region)
                    if text:
                        found[f"{name}_{region}.txt"] = text
        return found

    def region(self, month, region):
        """The text of a region's report; None where nothing was sold."""
        rows = [row for row in self.rows[month] if row["Region"] == region]
        return financial(month_name(month), *rows, totals=totals(rows)) if rows else None

    def wrong_first(self):
        """{name: text} of files of the first month that lack a row of Europe's, to be replaced."""
        kept = self.rows[FIRST]
        lost = next(row for row in kept if row["Region"] == "EU")
        self.rows[FIRST] = [row for row in kept if row is not lost]
        found = self.files()
        self.rows[FIRST] = kept
        return {name: text for name, text in found.items() if file_name(FIRST) in name}

    def others(self):
        """{name: text} of files that do not count: of the third month, without some of Germany's rows."""
        month, kept = FIRST + 2, self.rows[FIRST + 2]
        if self.form(month) == "regional":
            return {}
        lost, also_lost = [row for row in kept if row["Country Of Sale"] == "DE"][:2]
        self.rows[month] = rest = [row for row in kept if row is not lost]
        name = file_name(month)
        found = {f"{name}_EU.txt": self.region(month, "EU")}
        if self.form(month) == "detailed":
            rest = [row for row in rest if row is not also_lost]
            found[f"{name}_ZZ.txt"] = financial(month_name(month), *rest, totals=totals(rest))
        self.rows[month] = kept
        return found

    def overviews(self):
        """{name: text}: each ties, but the last, whose first row earned a cent more. One of the third
        month owes a cent more than its sum."""
        found = {}
        for month, rows in self.rows.items():
            is_last, is_third = month == FIRST + REPORTED - 1, month == FIRST + 2
            text = self._overview(month, rows, 10_000 * is_last, 10_000 * is_third)
            found[f"financial_report_{month_name(month)}.csv"] = text
        return found

    def _overview(self, month, rows, more_earned, more_owed):
        sums = {}
        for row in rows:
            key = row["Region"]
            units, share, _ = sums.get(key, (0, 0, ""))
            sums[key] = (units + int(row["Quantity"]), share + micros(row["Extended Partner Share"]),
                         row["Partner Share Currency"])
        paid, carried, total = [], [], 0
        for region, (units, share, currency) in sorted(sums.items()):
            earned = share + more_earned
            tax = -earned // 20 // 10_000 * 10_000 if region == "JP" else 0
            adjustment = self.random.choice([0, 0, 0, -1_230_000])
            owed = earned + tax + adjustment + more_owed
            more_earned = more_owed = 0
            amounts = [earned, earned, 0, adjustment, tax, owed]
            texts = ["0.00"] + [amount_text(amount, "EUR") for amount in amounts]
            start = [f"{region} ({currency})", str(units), *texts]
            if region in ("AP", "MX"):
                carried.append([*start, "", "", "EUR"])
            else:
                rate = self.random.randrange(10_000, 200_000)
                proceeds = owed * rate // 100_000 // 10_000 * 10_000
                total += proceeds
                paid.append([*start, f"{rate // 100_000}.{rate % 100_000:05}",
                             amount_text(proceeds, "EUR"), "EUR"])
        header = ("Region (Currency),Units Sold,Balance,Earned,Pre-Tax Subtotal,Input Tax,Adjustments,"
                  "Withholding Tax,Total Owed,Exchange Rate,Proceeds,Bank Account Currency")
        lines = [",".join(row) for row in paid] + [",,", f',,,"{amount_text(total, "EUR")}" EUR',
                                                   ",,,Paid to BANK", ",,", header]
        lines += [",".join(row) for row in carried]
        calendar = month - 3
        title = f"{MONTH_NAMES[calendar % 12]}, {calendar // 12}"
        return overview(title, *lines, columns=header)

    def planted_exceptions(self):
        """The exceptions by name that must be there."""
        names = {"sign_disagrees", "share_disagrees", "currency_unknown", "owed_disagrees",
                 "earned_disagrees"}
        names |= {"settled_outside"} if self.mode == "detailed" else set()
        return names | ({"reports_disagree"} if self.mode != "regional" else set())


def totals(rows):
    """All that a financial report can say of its rows."""
    found = f"Total_Rows\t{len(rows)}\n"
    if len({row["Partner Share Currency"] for row in rows}) == 1:
        share = sum(micros(row["Extended Partner Share"]) for row in rows)
        found += f"Total_Amount\t{amount_text(share, 'EUR')}\n"
    units = sum(max(0, int(row["Quantity"])) for row in rows)
    return f"{found}Total_Units\t{units}\n" + list_by_country(rows)


def file_name(month):
    """A vendor and the month's calendar name, as Apple's files have them."""
    calendar = month - 3
    return f"85000001_{calendar % 12 + 1:02}{calendar // 12 % 100:02}"
