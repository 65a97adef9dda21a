//! `date_local` and `date_gmt`, in formats of strftime(3).

use std::borrow::Cow;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::fmt::strtime::{BrokenDownTime, Config};
use jiff::tz::TimeZone;
use kirin_ssi::Zone;

/// The longest format that is read, and the longest date, in bytes.
const MAX_BYTES: usize = 256;

/// Returns the time `now`, in seconds since the epoch, in `format`. The server's zone is that of
/// `TZ` or `/etc/localtime`. Text that is no conversion stays as it is.
pub fn format(now: u64, zone: Zone, format: &str) -> Bytes {
    let zone = match zone {
        // The library keeps it and reads it again every few minutes.
        Zone::Local => TimeZone::system(),
        // "GMT" for %Z, as strftime(3) has it after gmtime(3).
        Zone::Gmt => TimeZone::posix("GMT0").unwrap_or(TimeZone::UTC),
    };
    formatted(now, zone, format).unwrap_or_default()
}

fn formatted(now: u64, zone: TimeZone, format: &str) -> Option<Bytes> {
    if format == "%s" {
        return Some(Bytes::from(now.to_string()));
    }
    if format.len() > MAX_BYTES {
        return None;
    }
    let time = Timestamp::from_second(i64::try_from(now).ok()?).ok()?.to_zoned(zone);
    let config = Config::new().lenient(true);
    let mut date = String::new();
    BrokenDownTime::from(&time).format_with_config(&config, &*posix(format), &mut date).ok()?;
    (date.len() <= 4 * MAX_BYTES).then(|| Bytes::from(date))
}

/// Returns the format with the conversions that depend on a locale written out as in the POSIX
/// locale, in which servers run. The library has those of Unicode. `E` and `O` ask for other
/// calendars and digits of a locale; the POSIX locale has none.
fn posix(format: &str) -> Cow<'_, str> {
    if !format.contains('%') {
        return Cow::Borrowed(format);
    }
    let mut posix = String::with_capacity(format.len() + 32);
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        posix.push_str(&rest[..at]);
        let conversion = &rest[at + 1..];
        let modified = conversion.strip_prefix(['E', 'O']);
        let modified = modified.filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
        let plain = modified.unwrap_or(conversion);
        let Some(letter) = plain.chars().next() else {
            posix.push_str(&rest[at..]);
            return Cow::Owned(posix);
        };
        match letter {
            'c' => posix.push_str("%a %b %e %H:%M:%S %Y"),
            'x' => posix.push_str("%m/%d/%y"),
            'X' => posix.push_str("%H:%M:%S"),
            'r' => posix.push_str("%I:%M:%S %p"),
            letter => posix.extend(['%', letter]),
        }
        rest = &plain[letter.len_utf8()..];
    }
    posix.push_str(rest);
    Cow::Owned(posix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_strftimes() {
        let tokyo = TimeZone::get("Asia/Tokyo").unwrap();
        for (zone, format, expected) in [
            (
                TimeZone::posix("GMT0").unwrap(),
                "%A, %d-%b-%Y %H:%M:%S %Z",
                "Saturday, 21-Nov-2026 06:00:00 GMT",
            ),
            (tokyo.clone(), "%A, %d-%b-%Y %H:%M:%S %Z", "Saturday, 21-Nov-2026 15:00:00 JST"),
            (tokyo, "%z", "+0900"),
            (TimeZone::UTC, "%s", "1795240800"),
            (TimeZone::UTC, "%Y年%m月%d日 %e %j %y %I %p", "2026年11月21日 21 325 26 06 AM"),
            (
                TimeZone::UTC,
                "%D %T %R %F %a %B %n%t%%",
                "11/21/26 06:00:00 06:00 2026-11-21 Sat November \n\t%",
            ),
            (
                TimeZone::UTC,
                "%c|%x|%X|%r",
                "Sat Nov 21 06:00:00 2026|11/21/26|06:00:00|06:00:00 AM",
            ),
            (TimeZone::UTC, "%Ey %Od %Ec %%c %%Ey", "26 21 Sat Nov 21 06:00:00 2026 %c %Ey"),
            (TimeZone::UTC, "%-d %_d %^a %é %E", "21 21 SAT %é %E"),
            (TimeZone::UTC, "no conversion %J", "no conversion %J"),
            (TimeZone::UTC, "%", "%"),
            (TimeZone::UTC, "", ""),
        ] {
            assert_eq!(formatted(1_795_240_800, zone, format).unwrap(), expected, "{format}");
        }
    }

    #[test]
    fn a_format_cannot_make_a_large_date() {
        assert_eq!(format(0, Zone::Gmt, &"%A".repeat(200)), "");
        assert!(format(u64::MAX, Zone::Local, "%Y").is_empty());
        assert!(format(0, Zone::Gmt, &"%250Y".repeat(50)).len() <= 4 * MAX_BYTES);
    }
}
