//! `date_local` and `date_gmt`, in formats of strftime(3).

use bytes::Bytes;
use jiff::Timestamp;
use jiff::fmt::strtime::{BrokenDownTime, Config};
use jiff::tz::TimeZone;
use kirin_ssi::Zone;

/// The longest format that is looked at, and the longest date, in bytes.
const MAX_BYTES: usize = 256;

/// The time `now`, in seconds since the epoch, in `format`; the server's zone is the one of `TZ` or `/etc/localtime`. What is no
/// conversion stays as it is.
pub fn format(now: u64, zone: Zone, format: &str) -> Bytes {
    let zone = match zone {
        // Kept by the library, and looked for anew every few minutes.
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
    BrokenDownTime::from(&time).format_with_config(&config, format, &mut date).ok()?;
    (date.len() <= 4 * MAX_BYTES).then(|| Bytes::from(date))
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
