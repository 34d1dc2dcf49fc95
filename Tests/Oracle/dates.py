# Calendar arithmetic: times as text, days in a zone, names of periods (revenue rules, R9, and S7).
import datetime
import re
import zoneinfo

DAY_MS = 86_400_000
UNIX_EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
FISCAL_MONTHS_WEEKS = (5, 4, 4, 5, 4, 4, 5, 4, 4, 5, 4, 4)


def civil_from_days(days):
    """(year, month, day) of the proleptic Gregorian calendar, days counted from 1970-01-01."""
    # One cycle of 400 years is 146,097 days: shift into the range that `datetime` knows.
    cycles = (days + UNIX_EPOCH_ORDINAL - 1) // 146_097
    date = datetime.date.fromordinal(days + UNIX_EPOCH_ORDINAL - cycles * 146_097)
    return date.year + 400 * cycles, date.month, date.day


def days_from_text(text):
    """`2026-03-14` as days since 1970-01-01; ValueError for anything else."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError(f"not a day: {text}")
    return datetime.date.fromisoformat(text).toordinal() - UNIX_EPOCH_ORDINAL


def time_text(ms):
    """RFC 3339 in UTC with milliseconds."""
    days, rest = divmod(ms, DAY_MS)
    year, month, day = civil_from_days(days)
    seconds, thousandths = divmod(rest, 1000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{thousandths:03}"
    return f"{year:04}-{month:02}-{day:02}T{clock}Z"


def time_from_text(text):
    """Epoch milliseconds of an RFC 3339 time with up to milliseconds; ValueError for other texts."""
    pattern = (
        r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})"
        r"(?:\.([0-9]{1,3}))?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
    )
    match = re.fullmatch(pattern, text)
    if match is None:
        raise ValueError("not an RFC 3339 time")
    day, hour, minute, second, fraction, sign, zone_hours, zone_minutes = match.groups()
    if int(hour) > 23 or int(minute) > 59 or int(second) > 59:
        raise ValueError("no such time of day")
    if int(zone_hours or 0) > 23 or int(zone_minutes or 0) > 59:
        raise ValueError("no such offset")
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second)
    offset = int(zone_hours or 0) * 3600 + int(zone_minutes or 0) * 60
    seconds -= -offset if sign == "-" else offset
    return days_from_text(day) * DAY_MS + seconds * 1000 + int((fraction or "0").ljust(3, "0"))


def readable_text(ms, is_pacific):
    """The instant, cut to seconds, as Apple's replies write it."""
    zone = "America/Los_Angeles" if is_pacific else "Etc/GMT"
    instant = datetime.datetime.fromtimestamp(ms // 1000, zoneinfo.ZoneInfo(zone))
    return instant.strftime("%Y-%m-%d %H:%M:%S ") + zone


def readable_ms(text):
    """Epoch milliseconds of `2011-08-02 15:08:02 Etc/GMT`, or of Los Angeles; None for anything else.

    Of an hour that occurs twice in Los Angeles the first counts; rules from before 2007 are not
    known.
    """
    pattern = (
        r"([0-9]{4})-([0-9]{2})-([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2})"
        r" (Etc/GMT|America/Los_Angeles)"
    )
    match = re.fullmatch(pattern, text) if isinstance(text, str) else None
    if match is None:
        return None
    *parts, zone = match.groups()
    if zone != "Etc/GMT" and int(parts[0]) < 2007:
        return None
    try:
        local = datetime.datetime(*map(int, parts), tzinfo=zoneinfo.ZoneInfo(zone), fold=0)
    except ValueError:
        return None
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (local - epoch) // datetime.timedelta(milliseconds=1)


class Zone:
    """A time zone of the IANA database."""

    def __init__(self, name):
        self._info = zoneinfo.ZoneInfo(name)
        self._is_utc = name == "UTC"

    def day(self, ms):
        """The local day at that instant, counted from 1970-01-01."""
        if self._is_utc:
            return ms // DAY_MS
        # The offset is looked up within the years that `datetime` can shift.
        first = datetime.datetime(1, 1, 3)
        last = datetime.datetime(9999, 12, 29)
        epoch = datetime.datetime(1970, 1, 1)
        seconds = ms // 1000
        low, high = (int((limit - epoch).total_seconds()) for limit in (first, last))
        instant = epoch + datetime.timedelta(seconds=min(max(seconds, low), high))
        local = instant.replace(tzinfo=datetime.timezone.utc).astimezone(self._info)
        return (seconds + int(local.utcoffset().total_seconds())) * 1000 // DAY_MS


    def start_ms(self, day):
        """The first instant of a local day."""
        low, high = (day - 2) * DAY_MS, (day + 2) * DAY_MS
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.day(middle) >= day else (middle + 1, high)
        return low


def month_of(day):
    """The number of months from year 0 to the month of the day."""
    year, month, _ = civil_from_days(day)
    return 12 * year + month - 1


def month_start(month):
    """The first day of a month as numbered by `month_of`, counted from 1970-01-01."""
    cycles, month = divmod(month - 12 * 2000, 12 * 400)
    first = datetime.date(2000 + month // 12, month % 12 + 1, 1)
    return first.toordinal() - UNIX_EPOCH_ORDINAL + cycles * 146_097


def fiscal_year_end(year):
    """S7: the last Saturday of September, counted from 1970-01-01."""
    last = month_start(12 * year + 9) - 1
    # 1970-01-03 was a Saturday.
    return last - (last - 2) % 7


def fiscal_month_weeks(year):
    """The weeks of a fiscal year's months; in a year of 53 the third has one more."""
    weeks = list(FISCAL_MONTHS_WEEKS)
    if fiscal_year_end(year) - fiscal_year_end(year - 1) == 53 * 7:
        weeks[2] += 1
    return weeks


def fiscal_month(day):
    """(fiscal year, month from 1) of the day."""
    year, _, _ = civil_from_days(day)
    if day > fiscal_year_end(year):
        year += 1
    month, end = 0, fiscal_year_end(year - 1)
    for weeks in fiscal_month_weeks(year):
        if day <= end:
            break
        month, end = month + 1, end + 7 * weeks
    return year, month


def period_name(days, period):
    """The name of the year, quarter, month, week (ISO), day or fiscal month that contains the day."""
    if period == "fiscal-month":
        year, month = fiscal_month(days)
        return f"FY{year:04}-P{month:02}"
    year, month, day = civil_from_days(days)
    if period == "year":
        return f"{year:04}"
    if period == "quarter":
        return f"{year:04}-Q{(month + 2) // 3}"
    if period == "month":
        return f"{year:04}-{month:02}"
    if period == "day":
        return f"{year:04}-{month:02}-{day:02}"
    # An ISO week belongs to the year of its Thursday; 1970-01-01 was one.
    thursday = days // 7 * 7 + (7 if days % 7 >= 4 else 0)
    week_year, week_month, week_day = civil_from_days(thursday)
    first = thursday - _day_of_year(week_year, week_month, week_day)
    return f"{week_year:04}-W{(thursday - first) // 7 + 1:02}"


def _day_of_year(year, month, day):
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = [31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return sum(lengths[: month - 1]) + day - 1
