//! The name that a user probably meant.

/// The lowest similarity at which a name is suggested: 0 for any name, 1 for the same name.
const MIN_SIMILARITY: f64 = 0.7;

/// Returns the name among `allowed` that is most like `written`, if one is.
pub fn closest<'a>(written: &str, allowed: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    allowed
        .map(|name| (strsim::jaro_winkler(written, name), name))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, name)| name)
}

/// Returns the question whether the closest of `allowed` was meant, to follow a message. It is
/// empty if no name is close.
pub fn did_you_mean<'a>(written: &str, allowed: impl Iterator<Item = &'a str>) -> String {
    closest(written, allowed).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_is_suggested_if_one_is_close() {
        let keys = ["address", "access_log", "keep_alive", "tls"];
        for (written, meant) in [
            ("adress", Some("address")),
            ("acces_log", Some("access_log")),
            ("keepalive", Some("keep_alive")),
            ("Tls", Some("tls")),
            ("workers", None),
            ("", None),
        ] {
            assert_eq!(closest(written, keys.into_iter()), meant, "{written}");
        }
    }
}
