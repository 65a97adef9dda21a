//! The unit of the durations in a log: from its format, or by `--time-unit`.

use clap::ValueEnum;
use kirin_log_summary::line::{LineFormat, TimeUnit};

/// A unit as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DurationUnit {
    S,
    Ms,
    Us,
}

impl DurationUnit {
    fn name(self) -> &'static str {
        match self {
            Self::S => "s",
            Self::Ms => "ms",
            Self::Us => "us",
        }
    }

    fn unit(self) -> TimeUnit {
        match self {
            Self::S => TimeUnit::Seconds,
            Self::Ms => TimeUnit::Milliseconds,
            Self::Us => TimeUnit::Microseconds,
        }
    }
}

/// Returns the unit of the durations in a log. `option` is that of the command line, and
/// `configuration` the file that says the format, if one does. An option that would have no effect,
/// or a wrong one, is an error.
pub fn duration_unit(
    option: Option<DurationUnit>,
    format: Option<&LineFormat>,
    configuration: Option<&str>,
) -> Result<TimeUnit, String> {
    let Some(option) = option else { return Ok(TimeUnit::Seconds) };
    let unit = option.unit();
    let contradiction = |reason: String| {
        let name = option.name();
        Err(format!("--time-unit {name} contradicts the format: {reason}; leave --time-unit out"))
    };
    match (format.map(LineFormat::duration_unit), format, configuration) {
        (Some(Some((known, directive))), ..) => match known == unit {
            true => Ok(unit),
            false => contradiction(format!("`{directive}` is in {}", unit_name(known))),
        },
        (_, Some(format), Some(file)) if format.has_durations_of_any_unit() => {
            match unit == TimeUnit::Seconds {
                true => Ok(unit),
                false => contradiction(format!("it is that of {file}, and Kirin writes seconds")),
            }
        }
        (_, Some(LineFormat::Terminal), _) => contradiction("each line names its unit".into()),
        (_, Some(format), _) if !format.has_durations_of_any_unit() => {
            contradiction("it has no duration".into())
        }
        _ => Ok(unit),
    }
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Seconds => "seconds",
        TimeUnit::Milliseconds => "milliseconds",
        TimeUnit::Microseconds => "microseconds",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_contradicts_the_format_is_refused() {
        let format = |text: &str| LineFormat::from_text(text).expect("a format");
        for (option, text, configuration, expected) in [
            (Some(DurationUnit::Us), Some("%r %s %D"), None, Ok(TimeUnit::Microseconds)),
            (None, Some("%r %s %D"), None, Ok(TimeUnit::Seconds)),
            (Some(DurationUnit::Ms), Some("%r %s %D"), None, Err("`%D` is in microseconds")),
            (Some(DurationUnit::Ms), Some("%r %s"), None, Err("it has no duration")),
            (Some(DurationUnit::Ms), Some("terminal"), None, Err("each line names its unit")),
            (Some(DurationUnit::Ms), Some("json"), None, Ok(TimeUnit::Milliseconds)),
            (Some(DurationUnit::S), Some("json"), Some("kirin.toml"), Ok(TimeUnit::Seconds)),
            (
                Some(DurationUnit::Ms),
                Some("json"),
                Some("kirin.toml"),
                Err("--time-unit ms contradicts the format: it is that of kirin.toml"),
            ),
            (Some(DurationUnit::Us), None, None, Ok(TimeUnit::Microseconds)),
        ] {
            let format = text.map(format);
            let found = duration_unit(option, format.as_ref(), configuration);
            match (found, expected) {
                (Err(error), Err(part)) => assert!(error.contains(part), "{text:?}: {error}"),
                (found, expected) => {
                    assert_eq!(found, expected.map_err(str::to_owned), "{text:?} {option:?}");
                }
            }
        }
    }
}
