//! HTTP-dates in the three forms that a recipient must accept (RFC 9110 section 5.6.7).
//!
//! Pure. Conditions, caching and stored pages all use this parser. It accepts any word as the name
//! of the day, and ignores case, as browsers and nginx do. Everything else must follow the grammar,
//! because an invalid `Expires` must count as a date in the past.

const MONTHS: [&[u8]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// The longest date in bytes: `Wednesday, 06-Nov-94 08:49:37 GMT`. The name of the day may be any
/// word of that length.
const MAX_BYTES: usize = 64;

/// Parses an HTTP-date into seconds since the epoch. Returns `None` if it is malformed or before
/// the epoch.
pub fn parse_date(value: &[u8]) -> Option<u64> {
    if value.len() > MAX_BYTES {
        return None;
    }
    let day_name = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    if day_name == 0 {
        return None;
    }
    match &value[day_name..] {
        [b',', b' ', day @ ..] => match day.get(2)? {
            b' ' => imf_fixdate(day),
            b'-' => rfc850_date(day),
            _ => None,
        },
        [b' ', month @ ..] => asctime_date(month),
        _ => None,
    }
}

/// Parses `06 Nov 1994 08:49:37 GMT`.
fn imf_fixdate(date: &[u8]) -> Option<u64> {
    let [d1, d2, b' ', m1, m2, m3, b' ', y1, y2, y3, y4, b' ', time @ .., b' ', z1, z2, z3] = date
    else {
        return None;
    };
    is_gmt([*z1, *z2, *z3]).then_some(())?;
    let year = number(&[*y1, *y2, *y3, *y4])?;
    seconds(year, month(&[*m1, *m2, *m3])?, number(&[*d1, *d2])?, time)
}

/// Parses `06-Nov-94 08:49:37 GMT`. The century is the one that POSIX chooses: 69 is 1969.
fn rfc850_date(date: &[u8]) -> Option<u64> {
    let [d1, d2, b'-', m1, m2, m3, b'-', y1, y2, b' ', time @ .., b' ', z1, z2, z3] = date else {
        return None;
    };
    is_gmt([*z1, *z2, *z3]).then_some(())?;
    let year = match number(&[*y1, *y2])? {
        year @ 0..70 => 2000 + year,
        year => 1900 + year,
    };
    seconds(year, month(&[*m1, *m2, *m3])?, number(&[*d1, *d2])?, time)
}

/// Parses `Nov  6 08:49:37 1994`.
fn asctime_date(date: &[u8]) -> Option<u64> {
    let [m1, m2, m3, b' ', d1, d2, b' ', time @ .., b' ', y1, y2, y3, y4] = date else {
        return None;
    };
    let day = match d1 {
        b' ' => number(&[*d2])?,
        _ => number(&[*d1, *d2])?,
    };
    seconds(number(&[*y1, *y2, *y3, *y4])?, month(&[*m1, *m2, *m3])?, day, time)
}

fn is_gmt(zone: [u8; 3]) -> bool {
    zone.eq_ignore_ascii_case(b"GMT")
}

/// Returns the month of this name, counted from 1.
fn month(name: &[u8]) -> Option<u64> {
    let place = MONTHS.iter().position(|month| name.eq_ignore_ascii_case(month))?;
    Some(place as u64 + 1)
}

/// Returns the number that these digits are.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
    })
}

/// Returns the seconds since the epoch at `time` (`08:49:37`) on this day. A leap second is the
/// first second of the next minute.
fn seconds(year: u64, month: u64, day: u64, time: &[u8]) -> Option<u64> {
    let [h1, h2, b':', m1, m2, b':', s1, s2] = time else { return None };
    let (hour, minute, second) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?, number(&[*s1, *s2])?);
    let is_leap = |year: u64| {
        (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
    };
    let days_of_month = |month: u64| match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if year < 1970
        || !(1..=days_of_month(month)).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    // Leap days in the years before `year`; 477 of them were before the epoch.
    let before = year - 1;
    let leap_days = before / 4 - before / 100 + before / 400 - 477;
    let days_before_month: u64 = (1..month).map(days_of_month).sum();
    let days = (year - 1970) * 365 + leap_days + days_before_month + day - 1;
    Some(days * DAY_SECONDS + hour * 60 * 60 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, UNIX_EPOCH};

    const EXAMPLE: u64 = 784_111_777;

    #[test]
    fn all_three_forms_are_read_whatever_the_day_is_called() {
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            // The day of the month does not fit the text.
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Friday, 06-Nov-94 08:49:37 GMT",
            "Tue Nov  6 08:49:37 1994",
            // The text mixes two forms, or has none of the three.
            "Sunday, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Xyz, 06 Nov 1994 08:49:37 GMT",
            // The case of letters makes no difference.
            "sun, 06 nov 1994 08:49:37 gmt",
            "SUN, 06 NOV 1994 08:49:37 GMT",
            "sUNDAY, 06-nOV-94 08:49:37 gMT",
            "sun nov  6 08:49:37 1994",
            "Sun Nov 06 08:49:37 1994",
        ] {
            assert_eq!(parse_date(date.as_bytes()), Some(EXAMPLE), "{date}");
        }
        for (date, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
            ("Thu, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
            ("Thursday, 01-Jan-70 00:00:00 GMT", 0),
            ("Sunday, 31-Dec-69 00:00:00 GMT", 3_155_673_600),
        ] {
            assert_eq!(parse_date(date.as_bytes()), Some(seconds), "{date}");
        }
    }

    #[test]
    fn dates_outside_of_the_grammar_are_refused() {
        for date in [
            "",
            "0",
            "-1",
            "Sun",
            "Sun,",
            "Sun, ",
            "Sun, 0",
            "06 Nov 1994 08:49:37 GMT",
            "Sun 06 Nov 1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06  Nov  1994 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 06 Nov 1994 08:49:37 GMT+1",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Tue, 29 Feb 1900 00:00:00 GMT",
            "Tue, 29 Feb 2001 00:00:00 GMT",
            "Sun, 06 Nop 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Sun Nov 6 08:49:37 1994",
            "Sun Nov   08:49:37 1994",
            "Sun, 06 Nov 1994 08:49:37 GMT\u{e9}",
        ] {
            assert_eq!(parse_date(date.as_bytes()), None, "{date}");
        }
        let long = format!("{}, 06 Nov 1994 08:49:37 GMT", "S".repeat(10_000));
        assert_eq!(parse_date(long.as_bytes()), None);
    }

    proptest! {
        #[test]
        fn dates_that_httpdate_writes_are_parsed(seconds in 0..253_402_300_800_u64) {
            let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
            prop_assert_eq!(parse_date(date.as_bytes()), Some(seconds));
        }

        #[test]
        fn dates_are_parsed_as_httpdate_does_and_nothing_panics(
            date in "[A-Za-z]{0,9}(, | |,)?([0-9 ]{1,3}|[A-Za-z]{3})[ -](Nov|[A-Za-z]{3}|[0-9 ]{2})[ -][0-9: ]{2,9}[ :0-9]{0,13}( GMT)?",
            garbage in prop::collection::vec(any::<u8>(), 0..70),
        ) {
            let _ = parse_date(&garbage);
            if let Ok(theirs) = httpdate::parse_http_date(&date) {
                let theirs = theirs.duration_since(UNIX_EPOCH).unwrap().as_secs();
                prop_assert_eq!(parse_date(date.as_bytes()), Some(theirs), "{}", date);
            }
        }
    }
}
