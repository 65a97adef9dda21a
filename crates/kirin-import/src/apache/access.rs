//! Who is served: `Require`, passwords, and the older `Allow` and `Deny`.

use toml::Value;

use crate::apache::tree::Directive;
use crate::draft::Draft;
use crate::section::Section;
use crate::steps::effects::Effect;
use crate::steps::network;

/// What a section says about who is served.
#[derive(Debug, Default)]
struct Rules {
    granted: bool,
    denied: bool,
    clients: Vec<Value>,
    user: bool,
    /// What Kirin cannot carry.
    lacking: Vec<String>,
    /// Whether any rule is there.
    any: bool,
    /// Whether all rules must hold, and not one of them.
    all: bool,
}

/// The accounts that a password is compared with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Accounts {
    file: Option<String>,
    realm: Option<String>,
    /// Whether they are of another kind than a file for Basic authentication.
    other: bool,
}

impl Accounts {
    /// Returns the accounts of a section inside one with these.
    pub(crate) fn inside(&self, body: &[Directive]) -> Self {
        let mut accounts = self.clone();
        for directive in body {
            let first = directive.argument(0);
            match directive.name.as_str() {
                "authuserfile" => accounts.file = Some(first.to_owned()),
                "authname" => accounts.realm = Some(first.to_owned()),
                "authtype" => accounts.other = !first.eq_ignore_ascii_case("basic"),
                "authbasicprovider" => accounts.other |= first != "file",
                _ => {}
            }
        }
        accounts
    }
}

/// Returns whether a directive is about who is served.
pub(crate) fn is_access(name: &str) -> bool {
    let names = [
        "require",
        "requireall",
        "requireany",
        "requirenone",
        "authtype",
        "authname",
        "authuserfile",
        "authgroupfile",
        "authbasicprovider",
        "authmerging",
        "order",
        "allow",
        "deny",
        "satisfy",
        "authbasicauthoritative",
        "authzprovideralias",
    ];
    names.contains(&name)
        || name.starts_with("authldap")
        || name.starts_with("authdbm")
        || name.starts_with("authdigest")
        || name.starts_with("oidc")
        || name.starts_with("mellon")
}

/// Reads the rules of a section. `None`: it has none.
pub(crate) fn access(body: &[Directive], accounts: &Accounts, draft: &mut Draft) -> Option<Effect> {
    let accounts = accounts.inside(body);
    let mut rules = Rules::default();
    let mut first = None;
    for directive in body.iter().filter(|directive| is_access(&directive.name)) {
        first = first.or(Some(directive));
        rules.read(directive);
    }
    let first = first?;
    if rules.any {
        rules.old(body);
    } else {
        rules.only_old(body);
    }
    if !rules.any {
        // Only `AuthName` and similar: another section has the rule.
        note(body, draft, "");
        return None;
    }
    let effect = rules.effect(&accounts);
    match &effect {
        Effect::Closed(reason) => {
            let text = format!("PROTECTION NOT CARRIED OVER: {reason}. Its routes are closed");
            for directive in body.iter().filter(|directive| is_access(&directive.name)) {
                draft.notes.left_out(&directive.place, &directive.line, &text);
            }
        }
        _ if rules.user && !rules.clients.is_empty() && !rules.all => {
            let text = "the password is asked of all clients, also of these addresses. Two routes \
                        of a path are as `RequireAny` (docs/from-nginx.md)";
            draft.notes.left_out(&first.place, &first.line, text);
            note(body, draft, "");
        }
        _ => note(body, draft, ""),
    }
    Some(effect)
}

fn note(body: &[Directive], draft: &mut Draft, text: &str) {
    for directive in body.iter().filter(|directive| is_access(&directive.name)) {
        draft.notes.carried(&directive.place, &directive.line, text);
    }
}

impl Rules {
    fn read(&mut self, directive: &Directive) {
        match directive.name.as_str() {
            "require" => self.require(directive),
            "requireany" => self.nested(directive, false),
            "requireall" => self.nested(directive, true),
            "requirenone" => {
                self.any = true;
                self.lacking.push("`RequireNone`".to_owned());
            }
            _ => {}
        }
    }

    fn nested(&mut self, section: &Directive, all: bool) {
        let several = section.body().len() > 1;
        if self.any && several {
            self.lacking.push("rules inside and outside of a section".to_owned());
        }
        if several {
            self.all = all;
        }
        for inner in section.body() {
            if inner.inner.is_some() && several {
                self.any = true;
                self.lacking.push("sections of rules inside each other".to_owned());
            } else {
                self.read(inner);
            }
        }
    }

    fn require(&mut self, directive: &Directive) {
        self.any = true;
        let words: Vec<_> = directive.arguments.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["all", "granted"] => self.granted = true,
            ["all", "denied"] => self.denied = true,
            ["valid-user"] => self.user = true,
            ["local"] => self.clients.extend(["127.0.0.0/8", "::1", "unix:"].map(Value::from)),
            ["ip", networks @ ..] => {
                for text in networks {
                    self.client(text);
                }
            }
            _ => self.lacking.push(format!("`{}`", directive.line)),
        }
    }

    /// Adds an address or a network, which may be as short as `10.1`.
    fn client(&mut self, text: &str) {
        let parts: Vec<_> = text.trim_end_matches('.').split('.').collect();
        let is_short = !text.contains([':', '/']) && parts.len() < 4;
        let full = if is_short {
            let zeros = vec!["0"; 4_usize.saturating_sub(parts.len())];
            let address = [parts.clone(), zeros].concat().join(".");
            format!("{address}/{}", parts.len() * 8)
        } else {
            text.to_owned()
        };
        match network(&full) {
            Some(network) => self.clients.push(network.into()),
            None => self.lacking.push(format!("`{text}`")),
        }
    }

    /// Reads `Order`, `Allow` and `Deny` beside `Require`.
    fn old(&mut self, body: &[Directive]) {
        let is_old = |name: &str| matches!(name, "order" | "allow" | "deny" | "satisfy");
        if body.iter().any(|directive| is_old(&directive.name)) {
            let mut old = Self::default();
            old.only_old(body);
            if !old.granted || !old.lacking.is_empty() || old.denied {
                self.lacking.push("`Allow` and `Deny` beside `Require`".to_owned());
            }
        }
    }

    fn only_old(&mut self, body: &[Directive]) {
        for directive in body {
            let from: Vec<_> = directive.arguments.iter().skip(1).map(String::as_str).collect();
            match directive.name.as_str() {
                "allow" if from == ["all"] => self.granted = true,
                "deny" if from == ["all"] => self.denied = true,
                "allow" => from.iter().for_each(|text| self.client(text)),
                "deny" => self.lacking.push(format!("`{}`", directive.line)),
                _ => continue,
            }
            self.any = true;
        }
        // `Order deny,allow` with `Deny from all` serves those of `Allow`.
        let order = body.iter().rfind(|directive| directive.name == "order");
        let allow_last =
            order.is_none_or(|order| order.arguments.concat().to_lowercase() == "deny,allow");
        let restricted = self.denied || !allow_last;
        if self.any && !self.clients.is_empty() && !restricted {
            self.granted = true;
        }
        if self.denied && self.granted {
            self.lacking.push("`Allow from all` with `Deny from all`".to_owned());
        }
        if !self.clients.is_empty() {
            self.denied = false;
        }
    }

    /// Returns the keys of the routes.
    fn effect(&self, accounts: &Accounts) -> Effect {
        if let Some(lacking) = self.lacking.first() {
            return Effect::Closed(format!("{lacking} is not there in Kirin"));
        }
        let mut keys = Section::default();
        let only_granted = self.granted && !self.all;
        if self.denied {
            keys.set("deny", 403);
            return Effect::Access(keys);
        }
        if only_granted {
            return Effect::Access(keys);
        }
        if !self.clients.is_empty() && (self.all || !self.user) {
            keys.set("allow", self.clients.clone());
        }
        if self.user {
            let Some(file) = accounts.file.as_ref().filter(|_| !accounts.other) else {
                return Effect::Closed(
                    "its accounts are in no file for Basic authentication".into(),
                );
            };
            keys.set("basic_auth", file.as_str());
            if let Some(realm) = &accounts.realm {
                keys.set("basic_auth_realm", realm.as_str());
            }
        }
        Effect::Access(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apache::lines::words;
    use crate::report::Place;

    fn read(text: &str) -> String {
        let directive = |line: &str| {
            let mut words = words(line).into_iter();
            Directive {
                place: Place { file: "f".into(), line: 1 },
                name: words.next().unwrap_or_default().to_lowercase(),
                arguments: words.collect(),
                inner: None,
                line: line.to_owned(),
            }
        };
        let body: Vec<_> = text.split("; ").map(directive).collect();
        match access(&body, &Accounts::default(), &mut Draft::default()) {
            None => "none".to_owned(),
            Some(Effect::Access(keys)) => keys
                .keys
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect::<Vec<_>>()
                .join(" "),
            Some(Effect::Closed(_)) => "closed".to_owned(),
            Some(_) => "other".to_owned(),
        }
    }

    #[test]
    fn rules_are_keys_of_routes_or_close_them() {
        for (text, expected) in [
            ("Require all granted", ""),
            ("Require all denied", "deny=403"),
            (
                "Require ip 10.1 192.168.1.0/255.255.255.0",
                "allow=[\"10.1.0.0/16\", \"192.168.1.0/24\"]",
            ),
            (
                "AuthType Basic; AuthUserFile /p; AuthName A; Require valid-user",
                "basic_auth=\"/p\" basic_auth_realm=\"A\"",
            ),
            (
                "AuthType Basic; AuthUserFile /p; Require valid-user; Require ip 10.0.0.1",
                "basic_auth=\"/p\"",
            ),
            ("AuthType Digest; AuthUserFile /p; Require valid-user", "closed"),
            ("AuthType Basic; AuthUserFile /p; Require user bob", "closed"),
            ("Require valid-user", "closed"),
            ("Require host example.org", "closed"),
            ("Require not ip 10.0.0.1", "closed"),
            ("Require all denied; Require ip 10.0.0.1", "deny=403"),
            ("Order allow,deny; Allow from all", ""),
            ("Order deny,allow; Deny from all", "deny=403"),
            ("Order deny,allow; Deny from all; Allow from 10.0.0.0/8", "allow=[\"10.0.0.0/8\"]"),
            ("Order allow,deny; Allow from 10.0.0.1", "allow=[\"10.0.0.1\"]"),
            ("Order allow,deny; Allow from all; Deny from 10.0.0.1", "closed"),
            ("AuthName A", "none"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
