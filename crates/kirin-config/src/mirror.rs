//! `mirror` of a route: an upstream that gets copies of requests.

use std::fmt;
use std::sync::Arc;

use http::Method;
use kirin_gateway::filters::mirror::ignored_parts::IgnoredParts;
use kirin_gateway::filters::mirror::settings::{MirrorSettings, Share};
use kirin_gateway::places::proxy;
use kirin_gateway::routing::conditions::Condition;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};

use crate::place::{Named, check_place, find_upstream};
use crate::source::{ConfigError, ConfigSource};
use crate::written::Written;

/// The value of `mirror`. `None` is `false`: there is none, whatever the site says.
#[derive(Debug, Default)]
pub struct MirrorKey(pub Option<MirrorSection>);

/// The upstream that gets copies of requests.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MirrorSection {
    /// The upstream that gets the copies, such as `"proxy:next"`.
    pub to: Written<String>,
    /// The part of the requests that are copied, such as `"10%"` or `"0.5%"`. Default: `"100%"`.
    pub share: Option<Written<String>>,
    /// The methods of the requests that are copied, such as `["GET", "POST"]`. `HEAD` goes with
    /// `GET`. Name others only if the mirror does not write to the database of the application: it
    /// would do everything a second time. Default: `["GET"]`.
    pub methods: Option<Written<Vec<Written<String>>>>,
    /// Regular expressions for parts of text bodies that are not compared, such as
    /// `["token=\\w+"]`. They are cut out of each line of both answers.
    #[serde(default)]
    pub ignore: Vec<Written<String>>,
}

/// Checks the key of a route.
pub fn check_mirror(
    key: &MirrorKey,
    named: &Named<'_>,
    source: &ConfigSource,
) -> Result<Option<Arc<MirrorSettings>>, ConfigError> {
    let Some(section) = &key.0 else { return Ok(None) };
    let to = &section.to;
    let place = check_place(to, named, source)?;
    if place.kind.name != proxy::KIND.name {
        let form = proxy::KIND.form();
        return Err(error(source, "to", to, &format!("copies go to an upstream, {form}")));
    }
    let upstream = find_upstream(&place.argument, named)
        .map_err(|message| source.error(to.span(), message))?;
    let share = match &section.share {
        None => Share::ALL,
        Some(share) => Share::parse(share).ok_or_else(|| {
            error(source, "share", share, "it is a percentage from `0%` to `100%`, such as `10%`")
        })?,
    };
    let methods = match &section.methods {
        None => vec![Method::GET],
        Some(methods) => {
            let names = methods.iter().map(|name| name.as_str());
            match Condition::methods(names) {
                Ok(Condition::Methods(methods)) => methods,
                Ok(_) => Vec::new(),
                Err(why) => {
                    let message = format!("`methods` of `mirror`: {why}");
                    return Err(source.error(methods.span(), message));
                }
            }
        }
    };
    let ignored = IgnoredParts::compile(section.ignore.iter().map(|pattern| pattern.as_str()))
        .map_err(|(index, why)| error(source, "ignore", &section.ignore[index], &why))?;
    Ok(Some(Arc::new(MirrorSettings {
        upstream,
        to: place.to_string(),
        share,
        methods,
        ignored: Arc::new(ignored),
        counters: Arc::default(),
    })))
}

fn error(source: &ConfigSource, key: &str, value: &Written<String>, why: &str) -> ConfigError {
    source.error(value.span(), format!("`{key}` of `mirror` is `{}`: {why}", value.as_str()))
}

impl<'de> Deserialize<'de> for MirrorKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MirrorVisitor)
    }
}

struct MirrorVisitor;

impl<'de> Visitor<'de> for MirrorVisitor {
    type Value = MirrorKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("false or a table such as { to = \"proxy:next\", share = \"10%\" }")
    }

    fn visit_bool<E: Error>(self, is_on: bool) -> Result<MirrorKey, E> {
        match is_on {
            false => Ok(MirrorKey(None)),
            true => Err(E::invalid_value(Unexpected::Bool(true), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<MirrorKey, A::Error> {
        let section = MirrorSection::deserialize(MapAccessDeserializer::new(map))?;
        Ok(MirrorKey(Some(section)))
    }
}

#[cfg(test)]
mod tests {
    use kirin_http::Method;

    use crate::check::Config;
    use crate::check::tests::{LISTENER, check_text};

    fn check(keys: &str) -> Result<Config, String> {
        check_text(&format!(
            "{LISTENER}[[upstream]]\nname = \"api\"\nservers = [\"127.0.0.1:1\"]\n\
             [[upstream]]\nname = \"next\"\nservers = [\"127.0.0.1:2\"]\n\
             [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n{keys}\n"
        ))
    }

    #[test]
    fn a_mirror_has_an_upstream_and_defaults() {
        for keys in ["", "mirror = false"] {
            assert!(check(keys).unwrap().gateway.sites[0].routes[0].mirror.is_none(), "{keys}");
        }
        let config = check("mirror = { to = \"proxy:next\" }").unwrap();
        // No warning says that `next` gets no requests.
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);
        let mirror = config.gateway.sites[0].routes[0].mirror.as_ref().unwrap();
        assert_eq!((mirror.upstream, mirror.share.to_string()), (1, "100%".into()));
        assert_eq!((&mirror.methods[..], mirror.ignored.is_empty()), (&[Method::GET][..], true));
        let keys = "[route.mirror]\nto = \"proxy:next\"\nshare = \"0.5%\"\n\
                    methods = [\"POST\", \"GET\"]\nignore = [\"a+\", \"(?i)b\"]";
        let config = check(keys).unwrap();
        let mirror = config.gateway.sites[0].routes[0].mirror.as_ref().unwrap();
        assert_eq!((&*mirror.to, mirror.share.to_string()), ("proxy:next", "0.5%".into()));
        assert_eq!(mirror.methods, [Method::GET, Method::POST]);
        assert_eq!(mirror.ignored.patterns().collect::<Vec<_>>(), ["a+", "(?i)b"]);
    }

    #[test]
    fn errors_name_line_key_and_what_is_allowed() {
        for (keys, expected) in [
            ("mirror = true", vec!["kirin.toml:12:10", "false or a table such as"]),
            ("mirror = {}", vec!["kirin.toml:12:10", "`to` is missing"]),
            ("mirror = { to = \"next\" }", vec!["kirin.toml:12:17", "`next` is not a place"]),
            (
                "mirror = { to = \"store\" }",
                vec!["kirin.toml:12:17", "`to` of `mirror` is `store`", "proxy:NAME"],
            ),
            (
                "mirror = { to = \"proxy:nest\" }",
                vec!["kirin.toml:12:17", "there is no upstream `nest`", "next"],
            ),
            (
                "mirror = { to = \"proxy:next\", share = \"0.1\" }",
                vec!["kirin.toml:12:39", "`share` of `mirror` is `0.1`", "from `0%` to `100%`"],
            ),
            (
                "mirror = { to = \"proxy:next\", methods = [\"get\"] }",
                vec!["kirin.toml:12:41", "`methods` of `mirror`", "write `GET`"],
            ),
            (
                "mirror = { to = \"proxy:next\", methods = [] }",
                vec!["kirin.toml:12:41", "matches no request"],
            ),
            (
                "mirror = { to = \"proxy:next\", ignore = [\"a\", \"(\"] }",
                vec!["kirin.toml:12:46", "`ignore` of `mirror` is `(`", "unclosed group"],
            ),
            (
                "mirror = { to = \"proxy:next\", ignored = [] }",
                vec!["kirin.toml:12:31", "unknown key `ignored`"],
            ),
            (
                "[[route]]\npath = \"/s\"\ntry = [\"store\"]\nmirror = { to = \"proxy:next\" }",
                vec!["`mirror` of route `/s`", "no app:NAME, proxy:NAME or cgi:PROGRAM"],
            ),
        ] {
            let error = check(keys).expect_err(keys);
            for part in expected {
                assert!(error.contains(part), "{keys}: {part}: {error}");
            }
        }
    }

    #[test]
    fn the_routes_of_a_site_have_its_mirror() {
        let config = check(
            "[[site]]\nhosts = [\"a.test\"]\nmirror = { to = \"proxy:next\" }\n\
             [[site.route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n\
             [[site.route]]\npath = \"/own\"\ntry = [\"proxy:api\"]\nmirror = false\n\
             [[site.route]]\npath = \"/s\"\ntry = [\"store\"]\n",
        )
        .unwrap();
        let site = config.gateway.sites.iter().find(|site| site.routes.len() == 3).unwrap();
        let mirrored = site.routes.iter().map(|route| route.mirror.is_some());
        assert_eq!(mirrored.collect::<Vec<_>>(), [true, false, false]);
    }
}
