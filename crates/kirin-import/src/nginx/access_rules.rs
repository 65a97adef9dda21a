//! `allow` and `deny`: who is served.

use toml::{Table, Value};

use super::context::Context;
use super::directive::Directive;
use super::network::network;
use super::scope::Scope;
use super::units::texts;

/// How often `allow` may follow `deny`. Each time needs a route of its own.
const MAX_GROUPS: usize = 16;

/// Who is served.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AccessRules {
    /// Conditions of clients that are refused before the others are looked at.
    pub refused: Vec<Table>,
    /// Who else is served.
    pub others: Others,
}

/// Who is served of those that are not refused.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Others {
    /// Everybody.
    #[default]
    All,
    /// Nobody.
    Nobody,
    /// These addresses.
    Only(Vec<String>),
}

/// Reads the rules that hold in a block. An error is the directive that Kirin cannot have, and why.
pub fn access_rules<'a>(
    scope: &Scope<'a>,
    context: &Context<'a>,
) -> Result<AccessRules, (&'a Directive, &'static str)> {
    let mut rules = AccessRules::default();
    let mut allowed: Vec<String> = Vec::new();
    let mut denied: Vec<String> = Vec::new();
    let mut is_decided = false;
    for directive in scope.list_of_any(&["allow", "deny"]) {
        context.carried(directive);
        if is_decided {
            continue;
        }
        let (address, is_allow) = (directive.arg(0), directive.name == "allow");
        match (address, is_allow) {
            ("all", true) => is_decided = true,
            ("all", false) => {
                is_decided = true;
                rules.others = match allowed.is_empty() {
                    true => Others::Nobody,
                    false => Others::Only(allowed.clone()),
                };
            }
            (address, is_allow) => match (network(address), is_allow) {
                (None, _) => return Err((directive, "`allow` has addresses and networks only")),
                (Some(address), true) => {
                    refuse(&mut rules.refused, &mut denied, &allowed);
                    allowed.push(address);
                }
                (Some(address), false) => denied.push(address),
            },
        }
        if rules.refused.len() > MAX_GROUPS {
            return Err((directive, "`allow` and `deny` take turns too often"));
        }
        if is_decided && rules.others != Others::Nobody {
            refuse(&mut rules.refused, &mut denied, &allowed);
        }
    }
    refuse(&mut rules.refused, &mut denied, &allowed);
    if rules.others == Others::Nobody {
        rules.refused.clear();
    }
    Ok(rules)
}

/// Moves the addresses of `denied` into a condition. Those of `allowed` come before them.
fn refuse(refused: &mut Vec<Table>, denied: &mut Vec<String>, allowed: &[String]) {
    if denied.is_empty() {
        return;
    }
    let mut condition = Table::new();
    condition.insert("clients".into(), texts(denied.drain(..)));
    if !allowed.is_empty() {
        let not = Table::from_iter([("clients".to_owned(), texts(allowed))]);
        condition.insert("not".into(), Value::Table(not));
    }
    refused.push(condition);
}
