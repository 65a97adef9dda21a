//! The sum of the statuses of several machines.

use serde_json::{Map, Value};

/// The members of a status that can be added up. The others are about one program.
const SUMMED: [&str; 10] = [
    "connections",
    "clients",
    "panics",
    "log_lines_lost",
    "access_log_lines_lost",
    "store",
    "origin",
    "apps",
    "upstreams",
    "cache",
];

/// Numbers of which the largest one counts.
const LARGEST: [&str; 12] = [
    "latency_ms",
    "wait_ms_average",
    "wait_ms_longest",
    "ejected_ms",
    "weight",
    "configured_weight",
    "generation",
    "median_ms",
    "usual_ms",
    "worker_bytes",
    "time_seconds",
    "lasted_seconds",
];

/// The members by which the items of a list are told apart.
const NAMES: [&str; 2] = ["name", "server"];

/// The words for a good state. If one machine has another word, that one counts.
const GOOD: [&str; 3] = ["ready", "available", "connected"];

/// The most items of a list in a sum.
const MOST_ITEMS: usize = 20_000;

/// Adds the status of a machine to a sum, which is an empty object at first.
pub fn add(sum: &mut Value, status: Value) {
    let Value::Object(mut status) = status else { return };
    status.retain(|name, _| SUMMED.contains(&name.as_str()));
    add_value(sum, Value::Object(status));
}

fn add_value(sum: &mut Value, more: Value) {
    match (sum, more) {
        (sum @ Value::Null, more) => *sum = more,
        (Value::Object(sum), Value::Object(more)) => add_members(sum, more),
        (Value::Array(sum), Value::Array(more)) => {
            more.into_iter().for_each(|item| add_item(sum, item));
        }
        (sum @ Value::Number(_), more @ Value::Number(_)) => *sum = added(sum, &more),
        (Value::String(sum), Value::String(more)) if GOOD.contains(&sum.as_str()) => *sum = more,
        _ => {}
    }
}

fn add_members(sum: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        let is_largest = LARGEST.contains(&name.as_str());
        let member = sum.entry(name).or_insert(Value::Null);
        match is_largest {
            true if member.as_f64() >= value.as_f64() => {}
            true => *member = value,
            false => add_value(member, value),
        }
    }
}

fn add_item(sum: &mut Vec<Value>, item: Value) {
    let name = |item: &Value| NAMES.iter().find_map(|key| item[*key].as_str().map(str::to_owned));
    let known = name(&item)
        .and_then(|wanted| sum.iter().position(|known| name(known).as_ref() == Some(&wanted)));
    match known {
        Some(at) => add_value(&mut sum[at], item),
        None if sum.len() < MOST_ITEMS => sum.push(item),
        None => {}
    }
}

fn added(a: &Value, b: &Value) -> Value {
    match (a.as_u64(), b.as_u64()) {
        (Some(a), Some(b)) => a.saturating_add(b).into(),
        _ => (a.as_f64().unwrap_or_default() + b.as_f64().unwrap_or_default()).into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sum(statuses: &[Value]) -> Value {
        let mut sum = json!({});
        statuses.iter().for_each(|status| add(&mut sum, status.clone()));
        sum
    }

    #[test]
    fn counters_add_up_and_the_program_is_left_out() {
        let one = json!({"pid": 1, "version": "1", "store": {"items": 2, "share": 0.5}});
        let two = json!({"pid": 2, "store": {"items": 3, "share": 0.25, "new": 1}, "cache": null});
        let expected = json!({"store": {"items": 5, "share": 0.75, "new": 1}, "cache": null});
        assert_eq!(sum(&[one.clone(), two.clone()]), expected);
        assert_eq!(sum(&[two, one])["store"], expected["store"]);
        let most = json!({"panics": u64::MAX});
        assert_eq!(sum(&[most.clone(), most.clone()]), most);
        assert_eq!(
            sum(&[json!(1), json!({"store": 1}), json!({"store": {}})]),
            json!({"store": 1})
        );
    }

    #[test]
    fn applications_and_servers_add_up_by_name() {
        let app = |name: &str, workers: &[u32], state: &str| {
            json!({"apps": [{"name": name, "workers": workers, "state": state,
                             "counters": {"requests": 1}, "slow_requests": [{"path": "/"}]}]})
        };
        let apps = [
            app("web", &[1, 2], "ready"),
            app("other", &[1], "ready"),
            app("web", &[1], "failed"),
            app("web", &[], "ready"),
        ];
        let sum_of_apps = sum(&apps);
        let web = &sum_of_apps["apps"][0];
        assert_eq!(sum_of_apps["apps"].as_array().map(Vec::len), Some(2));
        assert_eq!(web["workers"], json!([1, 2, 1]));
        assert_eq!((&web["state"], &web["counters"]["requests"]), (&json!("failed"), &json!(3)));
        assert_eq!(web["slow_requests"].as_array().map(Vec::len), Some(3));
        let server = |latency: f64| {
            json!({"upstreams": {"api": {"queued": 1, "servers": [
                {"server": "a:1", "requests": 2, "latency_ms": latency}]}}})
        };
        let expected = json!({"upstreams": {"api": {"queued": 2, "servers": [
            {"server": "a:1", "requests": 4, "latency_ms": 2.5}]}}});
        assert_eq!(sum(&[server(2.5), server(1.5)]), expected);
    }
}
