//! `trial` of an application: new code serves a part of the visitors first.

use std::time::Duration;

use kirin_workers::TrialConfig;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::source::{ConfigError, ConfigSource};
use crate::units::Seconds;
use crate::written::Written;

/// The largest part of the visitors in percent. With more, the old code would be on trial.
const MOST_PERCENT: f64 = 50.0;

/// How new code is tried after a reload.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialSection {
    /// The part of the visitors that get the new code, such as `"5%"`: more than 0 %, at most 50 %.
    pub share: Written<String>,
    /// How long the trial lasts, such as `"2m"`. It is at least the `deadline` of the application,
    /// because a request that hangs fails only then.
    pub time: Written<Seconds>,
}

/// Checks `trial` of an application with this limit for a request.
pub fn check_trial(
    section: &TrialSection,
    deadline: Duration,
    source: &ConfigSource,
) -> Result<TrialConfig, ConfigError> {
    let TrialSection { share, time } = section;
    let Some(percent) = percentage(share) else {
        let message = format!(
            "`share` of `trial` is `{}`: it is a percentage of more than `0%`, and at most `{}%`",
            share.as_str(),
            MOST_PERCENT
        );
        return Err(source.error(share.span(), message));
    };
    let duration = Duration::from(**time);
    if duration < deadline {
        let message = format!(
            "`time` of `trial` is {}, but `deadline` is {deadline:?}: the trial would end before a \
             request that hangs has failed",
            **time
        );
        return Err(source.error(time.span(), message));
    }
    Ok(TrialConfig { percent, time: duration })
}

/// Parses a percentage that is allowed, such as `5%` or `0.5%`.
fn percentage(text: &str) -> Option<f64> {
    let digits = text.strip_suffix('%')?.trim_end();
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let percent: f64 = digits.parse().ok().filter(|_| is_plain)?;
    (percent > 0.0 && percent <= MOST_PERCENT).then_some(percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    fn trial(keys: &str) -> Result<Option<TrialConfig>, String> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("app.psgi"), "").unwrap();
        let text = format!(
            "[[listener]]\naddress = \"8080\"\n[[app]]\nname = \"web\"\nload = \"app.psgi\"\n\
             {keys}\n[[route]]\npath = \"/\"\ntry = [\"app:web\"]\n"
        );
        let source = ConfigSource::from_text("kirin.toml", directory.path(), text);
        let config = read(&source).map_err(|error| error.to_string())?;
        Ok(config.apps[0].trial)
    }

    #[test]
    fn a_trial_has_a_share_and_a_time() {
        assert_eq!(trial("").unwrap(), None);
        for (share, expected) in [("5%", 5.0), ("0.5%", 0.5), ("50%", 50.0)] {
            let found = trial(&format!("trial = {{ share = \"{share}\", time = \"2m\" }}"));
            let time = Duration::from_secs(120);
            assert_eq!(found.unwrap(), Some(TrialConfig { percent: expected, time }), "{share}");
        }
        let short = "deadline = \"2s\"\ntrial = { share = \"5%\", time = \"2s\" }";
        assert_eq!(trial(short).unwrap().unwrap().time, Duration::from_secs(2));
    }

    #[test]
    fn errors_name_line_key_and_what_is_allowed() {
        for share in ["0%", "51%", "5", "-1%", "", "%", "nan%"] {
            let error = trial(&format!("trial = {{ share = \"{share}\", time = \"2m\" }}"));
            let error = error.unwrap_err();
            let expected = format!("kirin.toml:6:19: `share` of `trial` is `{share}`");
            assert!(error.contains(&expected), "{share}: {error}");
        }
        for (keys, parts) in [
            (
                "trial = { share = \"5%\", time = \"30s\" }",
                ["kirin.toml:6:32", "`time` of `trial` is 30s, but `deadline` is 60s"],
            ),
            ("trial = { share = \"5%\" }", ["kirin.toml:6:9", "`time` is missing"]),
            ("trial = { time = \"2m\" }", ["kirin.toml:6:9", "`share` is missing"]),
            ("trial = { part = \"5%\" }", ["kirin.toml:6:11", "unknown key `part`"]),
        ] {
            let error = trial(keys).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{keys}: {part}: {error}");
            }
        }
    }
}
