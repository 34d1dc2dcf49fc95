# The pages of `ledgerctl report` in a real browser: what they show, and what they must never do.
#
# LEDGERCTL names the program, CHROMIUM the browser (/usr/bin/chromium). Skipped if Playwright, its axe or
# the browser is missing.
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
from datetime import datetime, timedelta, timezone

try:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright
except ImportError:
    Axe = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEDGERCTL = os.environ.get("LEDGERCTL", str(ROOT / ".build/debug/ledgerctl"))
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
BUNDLE = "com.example.page"

# Texts that try to become markup, to hide, or to break the layout.
HOSTILE = [
    "<script>document.title='owned'</script>",
    "\"><img src=x onerror=document.title='owned'>",
    "</td></table></main><style>*{display:none}</style>",
    "a&lt;b&#60;c", "gnp.\u202egpj.exe", "two\nlines\tand\u0000nothing", "\u2066\u200b\ufeff",
    "javascript:alert(1)", "long." + "x" * 400, "w" * 120,
]


def receipt(number):
    """An invented transaction receipt, different for each number."""
    inner = base64.b64encode(f'{{"bid"="{BUNDLE}";"number"="{number}";}}'.encode()).decode()
    return base64.b64encode(f'{{"signature"="AAAA";"purchase-info"="{inner}";}}'.encode()).decode()


def ms(moment):
    return str(int(moment.timestamp() * 1000))


class History:
    """Lines of an import file: one receipt with one purchase each."""

    def __init__(self):
        self.lines = []

    def sell(self, moment, product, price=None, currency=None, country=None, user="u", returned=None,
             reason="1", quantity=1, **more):
        """A sale; `returned` is the moment of its return."""
        number = 1000 + len(self.lines)
        row = {"product_id": product, "transaction_id": str(number), "quantity": str(quantity),
               "original_transaction_id": str(number), "purchase_date_ms": ms(moment),
               "original_purchase_date_ms": ms(moment), **more}
        seen = moment
        if returned:
            row |= {"cancellation_date_ms": ms(returned), "cancellation_reason": reason}
            seen = returned
        line = {"marketplace": "itunes", "receipt": receipt(number), "occurred_at": text(seen),
                "user_identifier": user}
        if country:
            line["country_code"] = country
        if price is not None:
            line["metadata"] = {"prices": [{"transaction_id": str(number), "product_id": product,
                                            "price": price, "currency": currency}]}
        line["verification"] = {
            "occurred_at": text(seen), "endpoint": "production",
            "reply": {"status": 0, "environment": "Production",
                      "receipt": {"bundle_id": BUNDLE, "request_date_ms": ms(seen), "in_app": [row]}}}
        self.lines.append(json.dumps(line))


def text(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def day(month, number, hour=12):
    return datetime(2026, month, number, hour, tzinfo=timezone.utc)


def hostile():
    """Every hostile text as a product, with several currencies and many countries."""
    history = History()
    for index, product in enumerate(HOSTILE):
        history.sell(day(6, 1 + index), product, f"{index + 1}.99", "EUR", "DE", user=product[:60])
    history.sell(day(6, 20), HOSTILE[0], "1.00", "EUR", "DE", returned=day(6, 21), reason=HOSTILE[1])
    for index, (currency, price) in enumerate([
            ("USD", "4.99"), ("JPY", "1500"), ("KWD", "0.305"), ("VND", "375000"), ("GBP", "2.50"),
            ("CHF", "9.00"), ("SEK", "43.00"), ("BRL", "0.333333"), ("CLP", "3000")]):
        history.sell(day(6, 3 + index), "coins", price, currency, "US")
        history.sell(day(5, 3 + index), "coins", price, currency, "US", returned=day(6, 5))
    countries = ["FR", "IT", "ES", "PT", "NL", "BE", "AT", "CH", "PL", "CZ", "SK", "HU", "RO", "BG",
                 "GR", "IE", "DK", "SE", "NO", "FI", "EE", "LV", "LT", "XK"]
    for index, country in enumerate(countries):
        history.sell(day(6, 1 + index), "pro", f"{20 + index}.49", "EUR", country)
    history.sell(day(6, 9), "pro", country="DE")
    history.sell(day(6, 9), "pro.month", country="DE", is_trial_period="true",
                 web_order_line_item_id="77", expires_date_ms=ms(day(7, 9)))
    history.sell(day(4, 9), "pro.month", "5.00", "EUR", "DE", web_order_line_item_id="78",
                 expires_date_ms=ms(day(12, 9)))
    return history


def ordinary():
    """A month of one app: 20 countries, 10 products and five currencies, after a year of sales."""
    history = History()
    countries = ["DE", "FR", "IT", "ES", "PT", "NL", "BE", "AT", "GR", "IE", "FI", "EE", "LV", "LT", "SK",
                 "SI", "US", "GB", "JP", "BR"]
    currencies = {"US": "USD", "GB": "GBP", "JP": "JPY", "BR": "BRL"}
    for month in (4, 5, 6):
        for index in range(60):
            country = countries[index % 20]
            returned = day(month, 28) if index % 15 == 0 else None
            history.sell(day(month, 1 + index % 25), f"com.example.product.{index % 10}",
                         f"{3 + index % 7}.99", currencies.get(country, "EUR"), country, user=f"u{index}",
                         returned=returned)
    for index in range(8):
        history.sell(day(5, 2 + index), "com.example.month", "4.99", "EUR", countries[index],
                     user=f"s{index}", web_order_line_item_id=str(900 + index), expires_date_ms=ms(day(7, 9)))
    history.sell(day(6, 9), "com.example.product.1", country="DE")
    return history


def single():
    history = History()
    history.sell(day(6, 15), "coins", "375000", "VND", "VN")
    return history


def loss():
    """Only returns: net is below 0."""
    history = History()
    for number in range(3):
        history.sell(day(5, 1 + number), "coins", "1234567.89", "EUR", "DE", returned=day(6, 4 + number))
    return history


def unpriced():
    history = History()
    for number in range(4):
        history.sell(day(6, 1 + number), "coins", country="FR")
    return history


@unittest.skipIf(Axe is None, "axe-playwright-python is missing")
@unittest.skipUnless(shutil.which(CHROMIUM), "Chromium is missing")
class PageTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = pathlib.Path(cls.folder.name)
        cls.ledgers = {}
        for name, history in [("hostile", hostile()), ("ordinary", ordinary()), ("single", single()),
                              ("loss", loss()), ("unpriced", unpriced()), ("empty", History())]:
            cls.ledgers[name] = cls.make(name, history)
        playwright = sync_playwright().start()
        cls.addClassCleanup(playwright.stop)
        # The sandbox needs rights that a container's root lacks; the pages are our own.
        cls.browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def run_program(cls, ledger, *arguments):
        done = subprocess.run([LEDGERCTL, *arguments, "--ledger", str(ledger)], capture_output=True,
                              text=True, check=False)
        if done.returncode not in (0, 3):
            raise AssertionError(f"{arguments}: {done.returncode}\n{done.stderr}")
        return done.stdout

    @classmethod
    def make(cls, name, history):
        ledger = cls.root / name
        subprocess.run([LEDGERCTL, "init", str(ledger), "--origin", f"{name}.example"], check=True,
                       capture_output=True)
        if history.lines:
            lines = cls.root / f"{name}.ndjson"
            lines.write_text("\n".join(history.lines) + "\n")
            cls.run_program(ledger, "import", "--register-apps", str(lines))
            rates = cls.root / f"{name}.csv"
            rates.write_text("date,base,quote,rate\n" + "".join(
                f"2026-0{month}-01,EUR,{code},{rate}\n" for month in (4, 5, 6)
                for code, rate in [("USD", "1.1"), ("JPY", "163.7"), ("GBP", "0.85"), ("BRL", "6.1")]))
            cls.run_program(ledger, "rates", "import", str(rates))
        return ledger

    def report(self, name, *options):
        """Writes a page; returns its path."""
        path = self.root / f"{self.id().rsplit('.', 1)[1][:40]}-{name}-{len(options)}.html"
        self.run_program(self.ledgers[name], "report", *options, "-o", str(path))
        return path

    def opened(self, path, width=1200, scheme="light"):
        """The page in the browser, with its messages and requests."""
        context = self.browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.addCleanup(context.close)
        page = context.new_page()
        said = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: said.append(request.url)
                if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        return page, said

    def export(self, name, *arguments):
        return json.loads(self.run_program(self.ledgers[name], "export", *arguments, "--format", "json"))

    @staticmethod
    def table(page, name):
        """A table's rows, as the texts of their cells."""
        return page.evaluate(
            """name => [...document.getElementById(name).querySelectorAll('tbody tr, tfoot tr')]
               .map(row => [...row.cells].map(cell => cell.textContent))""", name)

    JUNE = ("--month", "2026-06")
    EXACT = ("--amounts", "exact")
    DAYS = ("--from", "2026-06-01", "--to", "2026-06-30")
    FIGURES = ("net", "gross", "returns", "reversals", "units", "returned_units", "reversed_units",
               "unpriced_units", "trials", "family_shared")

    def pages(self):
        for name in self.ledgers:
            yield name, self.report(name, *self.JUNE)
        yield "hostile", self.report("hostile", *self.JUNE, "--in", "EUR")
        yield "hostile", self.report("hostile", "--from", "2025-01-01", "--to", "2026-12-31")

    def test_no_page_says_or_asks_for_anything(self):
        for name, path in self.pages():
            with self.subTest(path=path.name):
                page, said = self.opened(path)
                page.wait_for_load_state("networkidle")
                self.assertEqual(said, [])
                self.assertEqual(page.title().split(" – ")[1], f"{name}.example")

    def test_no_page_is_wider_than_its_window(self):
        for _, path in self.pages():
            for width in (360, 820, 1600):
                with self.subTest(path=path.name, width=width):
                    page, _ = self.opened(path, width)
                    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
                    self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)

    def test_the_first_column_and_net_are_seen_at_every_width(self):
        net = """[...document.querySelectorAll('table')].flatMap(table => {
            const frame = table.parentElement.getBoundingClientRect()
            return [...table.querySelectorAll('thead th')].filter((one, index) => {
              const box = one.getBoundingClientRect()
              return (index == 0 || /^(Net|Net now|Gross, .*)$/.test(one.textContent))
                && (box.width == 0 || box.right > frame.right + 1)
            }).map(one => table.id + ': ' + one.textContent)})"""
        for _, path in self.pages():
            for width in (360, 820, 1600):
                with self.subTest(path=path.name, width=width):
                    page, _ = self.opened(path, width)
                    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
                    self.assertEqual(page.evaluate(net), [])

    def test_the_large_figures_stand_in_four_two_or_one_columns(self):
        path = self.report("ordinary", *self.JUNE, "--in", "EUR")
        lefts = "[...document.querySelectorAll('.figures:not(.small) > div')].map(one => one.offsetLeft)"
        for width in range(320, 1700, 60):
            with self.subTest(width=width):
                page, _ = self.opened(path, width)
                self.assertIn(len(set(page.evaluate(lefts))), (1, 2, 4))

    def test_a_copied_number_is_one_that_a_spreadsheet_reads(self):
        page, _ = self.opened(self.report("loss", *self.JUNE, *self.EXACT))
        copied = page.evaluate(
            """(() => {getSelection().selectAllChildren(document.querySelector('.figures .value'))
               return getSelection().toString()})()""")
        self.assertEqual(copied.replace("\n", ""), "-3703703.67EUR")
        sign = "getComputedStyle(document.querySelector('.value .sign'), '::before').content"
        self.assertIn("\u2212", page.evaluate(sign))

    def test_axe_finds_no_violation_in_light_and_dark(self):
        for _, path in self.pages():
            for scheme in ("light", "dark"):
                with self.subTest(path=path.name, scheme=scheme):
                    page, _ = self.opened(path, scheme=scheme)
                    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
                    found = Axe().run(page).response["violations"]
                    self.assertEqual([(one["id"], [node["html"][:200] for node in one["nodes"][:3]])
                                      for one in found], [])

    def test_texts_do_not_become_markup(self):
        path = self.report("hostile", *self.JUNE, "--in", "EUR")
        page, said = self.opened(path)
        self.assertEqual(said, [])
        foreign = "document.querySelectorAll('script, img, iframe, link, form').length"
        self.assertEqual(page.evaluate(foreign), 0)
        self.assertEqual(page.evaluate("document.querySelectorAll('style').length"), 1)
        self.assertEqual(page.evaluate("document.querySelectorAll('[style], [onerror]').length"), 0)
        shown = [row[0] for row in self.table(page, "products-EUR")]
        self.assertIn(HOSTILE[0], page.inner_text("main"))
        self.assertTrue(any("\\u{202E}" in product for product in shown) or len(shown) > 15)
        body = path.read_text()
        for hidden in "\u202e\u2066\u200b\ufeff\u0000":
            self.assertNotIn(hidden, body)

    def test_a_style_that_is_not_the_pages_own_is_refused(self):
        path = self.report("single", *self.JUNE)
        changed = path.with_name("changed.html")
        changed.write_text(path.read_text().replace("<main>", "<style>main{color:red}</style><main>"))
        _, said = self.opened(changed)
        self.assertTrue(any("Content Security Policy" in text for text in said), said)

    def test_figures_are_those_of_export(self):
        for options in ((), ("--in", "EUR"), ("--timezone", "Asia/Tokyo"), ("--refunds", "sale-date")):
            for name in ("hostile", "loss", "single", "unpriced"):
                with self.subTest(name=name, options=options):
                    page, _ = self.opened(self.report(name, *self.JUNE, *self.EXACT, *options))
                    self.check_steps(page, name, "by-step", "day", *self.DAYS, *options)
                    self.check_steps(page, name, "by-month", "month", "--from", "2025-06-01",
                                     "--to", "2026-06-30", *options)
                    self.check_names(page, name, "country", "countries", *options)
                    self.check_names(page, name, "product", "products", *options)
                    self.check_refunds(page, name, *options)

    def check_steps(self, page, name, table, period, *options):
        """A table has every row and column of the report."""
        rows = self.export(name, "revenue", "--by", "period", "--period", period, *options)["rows"]
        if not rows:
            self.assertEqual(page.query_selector(f"#{table}"), None)
            return
        expected = [[row["period"], row["currency"] or "–"]
                    + ["" if row[column] is None else str(row[column]) for column in self.FIGURES]
                    for row in rows]
        self.assertEqual(self.table(page, table), expected)

    def check_names(self, page, name, dimension, table, *options):
        """Rows of the report, the highest net first; those after the fifteenth are summed."""
        report = self.export(name, "revenue", "--by", dimension, *self.DAYS, *options)
        column = {"country": "country_code", "product": "product_id"}[dimension]
        for total in report["totals"]:
            currency = total["currency"]
            if currency is None:
                continue
            rows = [row for row in report["rows"] if row["currency"] == currency]
            rows.sort(key=lambda row: -micros(row["net"]))
            shown = self.table(page, f"{table}-{currency}")
            for row, cells in zip(rows[:15], shown):
                self.assertEqual(cells[0].split(" ")[0] if dimension == "country" else cells[0],
                                 visible(row[column]))
                self.assertEqual(cells[2], row["net"])
                self.assertEqual(cells[-1], str(row["units"]))
            rest = rows[15:]
            if rest:
                self.assertEqual(shown[15][0], f"{len(rest)} other{'s' if len(rest) > 1 else ''}")
                self.assertEqual(micros(shown[15][2]), sum(micros(row["net"]) for row in rest))
            if len(rows) > 1:
                self.assertEqual(shown[-1][2], total["net"])
                self.assertEqual(shown[-1][-1], str(total["units"]))

    def check_refunds(self, page, name, *options):
        """Returns and reversals add up to those of the report, by currency."""
        report = self.export(name, "revenue", *self.DAYS, *options)
        for total in report["totals"]:
            if page.query_selector("#refunds") is None:
                self.assertEqual((total["returned_units"], total["reversed_units"]), (0, 0))
                continue
            rows = [row for row in self.table(page, "refunds") if row[2] == (total["currency"] or "–")]
            self.assertEqual(sum(int(row[3]) for row in rows), total["returned_units"])
            self.assertEqual(sum(micros(row[4]) for row in rows), micros(total["returns"]))
            self.assertEqual(sum(micros(row[6]) for row in rows), micros(total["reversals"]))

    def test_key_figures_are_totals_and_their_change(self):
        page, _ = self.opened(self.report("hostile", *self.JUNE, *self.EXACT, "--in", "EUR"))
        now = self.total("hostile", *self.DAYS, "--in", "EUR")
        before = self.total("hostile", "--from", "2026-05-01", "--to", "2026-05-31", "--in", "EUR")
        shown = page.evaluate(
            """[...document.querySelectorAll('.figures > div')].map(one =>
               [...one.children].map(part => part.textContent))""")
        figures = {name: (value, change) for name, value, change in shown if name}
        for name, column in (("Net", "net"), ("Gross", "gross"), ("Returns", "returns")):
            value, change = figures[name]
            self.assertEqual(value, now[column] + "EUR")
            difference = micros(now[column]) - micros(before[column])
            self.assertEqual(micros(change.split(" ")[0]), difference)
        exceptions = self.export("hostile", "revenue", *self.DAYS, "--in", "EUR")["exceptions"]
        counted = page.evaluate(
            """Object.fromEntries([...document.querySelectorAll('.exceptions > li')].map(one =>
               [one.id.slice('exception-'.length), Number(one.querySelector('.times').textContent)]))""")
        self.assertEqual(counted, exceptions)

    def total(self, name, *options):
        totals = self.export(name, "revenue", *options)["totals"]
        return next(total for total in totals if total["currency"] == "EUR")

    def test_the_commands_on_a_page_give_its_figures(self):
        page, _ = self.opened(self.report("hostile", *self.JUNE, "--timezone", "Europe/Berlin"))
        shown = "[...document.querySelectorAll('.commands code')].map(one => one.textContent)"
        commands = page.evaluate(shown)
        self.assertGreaterEqual(len(commands), 9)
        for command in commands:
            done = subprocess.run(
                ["bash", "-c", command + " --format json"], capture_output=True, text=True, check=False,
                env=os.environ | {"LEDGER_DIR": str(self.ledgers["hostile"]),
                                  "PATH": f"{pathlib.Path(LEDGERCTL).parent}:{os.environ['PATH']}"})
            self.assertEqual(done.returncode, 0, command + done.stderr)
        first = subprocess.run(
            ["bash", "-c", commands[0] + " --format json"], capture_output=True, text=True, check=True,
            env=os.environ | {"LEDGER_DIR": str(self.ledgers["hostile"]),
                              "PATH": f"{pathlib.Path(LEDGERCTL).parent}:{os.environ['PATH']}"})
        expected = [[row["period"], row["currency"] or "–"] for row in json.loads(first.stdout)["rows"]]
        self.assertEqual([row[:2] for row in self.table(page, "by-step")], expected)

    def test_a_page_can_be_read_by_keyboard_and_by_its_landmarks(self):
        page, _ = self.opened(self.report("hostile", *self.JUNE))
        self.assertEqual(page.evaluate("document.querySelectorAll('h1').length"), 1)
        self.assertEqual(page.evaluate("document.querySelectorAll('main').length"), 1)
        self.assertEqual(page.evaluate(
            "[...document.querySelectorAll('table')].filter(one => !one.caption).length"), 0)
        self.assertEqual(page.evaluate(
            "[...document.querySelectorAll('th')].filter(one => !one.scope).length"), 0)
        page.keyboard.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.className"), "skip")
        page.keyboard.press("Enter")
        self.assertTrue(page.url.endswith("#figures"))

    def test_paper_has_what_is_open(self):
        page, _ = self.opened(self.report("hostile", *self.JUNE), width=700)
        page.emulate_media(media="print")
        self.assertTrue(page.locator("#recurring tbody tr").first.is_visible())
        self.assertFalse(page.locator("#by-step tbody tr").first.is_visible())
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        self.assertTrue(page.locator("#by-step tbody tr").first.is_visible())
        self.assertFalse(page.locator("nav").is_visible())
        self.assertTrue(page.pdf(format="A4").startswith(b"%PDF"))

    def test_an_ordinary_month_is_three_pages_on_paper(self):
        page, _ = self.opened(self.report("ordinary", *self.JUNE, "--in", "EUR"))
        pages = re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))
        self.assertIn(len(pages), (1, 2, 3))

    def test_the_same_events_give_the_same_bytes(self):
        one = self.report("hostile", *self.JUNE, "--in", "EUR").read_bytes()
        two = self.report("hostile", "--from", "2026-06-01", "--to", "2026-06-30", "--in", "EUR").read_bytes()
        self.assertEqual(one, two)


def micros(amount):
    """An amount of a report as an integer; none is 0."""
    if not amount:
        return 0
    whole, _, decimals = amount.lstrip("+-").partition(".")
    value = int(whole) * 1_000_000 + int((decimals + "000000")[:6])
    return -value if amount.startswith("-") else value


def visible(product):
    """A text as a page shows it."""
    shown = []
    for character in product:
        if character in "\n\r\t":
            shown.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[character])
        elif ord(character) < 0x20 or character in "\u202e\u2066\u200b\ufeff":
            shown.append("\\u{%X}" % ord(character))
        else:
            shown.append(character)
    return "".join(shown)


if __name__ == "__main__":
    unittest.main()
