//! The answer for `kirin status --all`: each machine, and the sum of all.

use std::time::Duration;

use kirin_clock::wall_seconds;
use serde_json::{Value, json};

use super::asking::Answers;
use super::card::{self, MachineCard};
use super::report::MachineReport;
use super::status_sum;
use crate::live::rates::Rates;

/// The numbers of machines that the sum has beside those of the status.
#[derive(Default)]
struct Numbers {
    requests: u64,
    requests_per_second: f64,
    errors: u64,
    workers: u64,
    busy_workers: u64,
}

/// Returns the answer as JSON.
pub fn text(answers: Answers) -> String {
    let (cards, reports): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
    let (mut sum, mut sum_of_status, mut answered) = (Numbers::default(), json!({}), 0);
    let mut machines = Vec::new();
    for ((card, name), report) in cards.iter().zip(card::names(&cards)).zip(reports) {
        let mut machine = described(card, &name);
        machine["answered"] = report.is_some().into();
        if let Some(report) = report {
            answered += 1;
            let numbers = Numbers::of(&report);
            numbers.write_to(&mut machine);
            // The clocks of two machines may differ.
            machine["uptime_seconds"] = (report.snapshot.uptime_ms / 1000).into();
            sum.add(&numbers);
            let MachineReport { snapshot, left_out } = report;
            status_sum::add(&mut sum_of_status, snapshot.status.clone());
            machine["left_out"] = left_out.into();
            machine["status"] = snapshot.status;
        }
        machines.push(machine);
    }
    let mut all = json!({ "machines": cards.len(), "answered": answered });
    sum.write_to(&mut all);
    all["status"] = sum_of_status;
    format!("{:#}\n", json!({ "machines": machines, "sum": all }))
}

fn described(card: &MachineCard, name: &str) -> Value {
    let uptime = Duration::from_secs(wall_seconds().saturating_sub(card.since));
    json!({
        "name": name,
        "id": card.id,
        "host": card.host,
        "pid": card.pid,
        "version": card.version,
        "serves": card.serves,
        "started_at": card.since,
        "uptime_seconds": uptime.as_secs(),
    })
}

impl Numbers {
    fn of(report: &MachineReport) -> Self {
        let snapshot = &report.snapshot;
        let apps = || snapshot.list("apps").iter();
        let workers: u64 =
            apps().filter_map(|app| app["workers"].as_array()).map(|pids| pids.len() as u64).sum();
        let idle: u64 = apps().filter_map(|app| app["idle_workers"].as_u64()).sum();
        Self {
            requests: snapshot.live.requests,
            requests_per_second: Rates::between(None, snapshot).requests,
            errors: snapshot.live.total.by_class[4],
            workers,
            busy_workers: workers.saturating_sub(idle),
        }
    }

    fn add(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.requests_per_second += other.requests_per_second;
        self.errors = self.errors.saturating_add(other.errors);
        self.workers += other.workers;
        self.busy_workers += other.busy_workers;
    }

    fn write_to(&self, value: &mut Value) {
        value["requests"] = self.requests.into();
        value["requests_per_second"] = self.requests_per_second.into();
        value["errors"] = self.errors.into();
        value["workers"] = self.workers.into();
        value["busy_workers"] = self.busy_workers.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::views::tests::snapshot;

    #[test]
    fn each_machine_is_there_and_the_numbers_of_those_that_answer_add_up() {
        let card = |host: &str| MachineCard { host: host.into(), ..MachineCard::default() };
        let report = || Some(MachineReport { snapshot: snapshot(), left_out: vec!["x".into()] });
        let text = text(vec![(card("a"), report()), (card("b"), None), (card("c"), report())]);
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let [a, b, c] = value["machines"].as_array().expect("machines").as_slice() else {
            panic!("{text}")
        };
        assert_eq!((&a["name"], &b["name"], &c["name"]), (&json!("a"), &json!("b"), &json!("c")));
        assert_eq!((&a["answered"], &b["answered"]), (&json!(true), &json!(false)));
        assert_eq!((&a["requests"], &b["requests"]), (&json!(1000), &Value::Null));
        assert_eq!((&a["workers"], &a["busy_workers"]), (&json!(2), &json!(1)));
        assert_eq!((&a["requests_per_second"], &a["left_out"]), (&json!(12.0), &json!(["x"])));
        let sum = &value["sum"];
        assert_eq!((&sum["machines"], &sum["answered"]), (&json!(3), &json!(2)));
        assert_eq!((&sum["requests"], &sum["busy_workers"]), (&json!(2000), &json!(2)));
        let one = snapshot().status["store"]["items"].as_u64().expect("items");
        assert_eq!(sum["status"]["store"]["items"], 2 * one);
    }
}
