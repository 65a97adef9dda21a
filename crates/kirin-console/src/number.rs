//! Numbers of the command line.

use std::fmt::Display;
use std::str::FromStr;

/// Returns a parser of numbers from `least` to `most`.
pub fn within<T>(least: T, most: T) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Copy,
{
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("allowed are {least} to {most}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_range_is_answered_with_the_range() {
        let parse = within(1_u16, 600);
        assert_eq!((parse("1"), parse("600")), (Ok(1), Ok(600)));
        for text in ["0", "601", "-1", "70000", "x", "", "1.5"] {
            assert_eq!(parse(text), Err("allowed are 1 to 600".into()), "{text}");
        }
    }
}
