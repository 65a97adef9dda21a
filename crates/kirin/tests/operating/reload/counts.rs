//! What goes on over a reload: counters, rate limits, the cache, the store, the live table.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kirin_tests::{Backend, Client, Kirin, Site, kirin_command, run_kirin, scripts, wait_for};

use super::Served;

const LISTENER: &str =
    "threads = 2\nmetrics = \"127.0.0.1:0\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n";

fn route(path: &str, more: &str) -> String {
    format!("[[route]]\npath = \"{path}\"\ntry = [\"files:public\"]\n{more}")
}

fn site() -> Site {
    Site::new().with("public/a.txt", "a").with("public/b/b.txt", "b")
}

/// Returns the sum of the samples of a family that have a label.
fn sum(served: &Served, family: &str, label: &str) -> f64 {
    let log = served.kirin.log();
    let url = log.split("metrics on http://").nth(1).expect("the address of metrics");
    let address = url.split('/').next().expect("an address").parse().expect("an address");
    let mut client = Client::connect(address);
    client.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let reply = client.read_reply();
    assert_eq!(reply.status, 200, "{}", reply.text());
    let (family, metrics) = (format!("{family}{{"), reply.text());
    let samples = metrics.lines().filter(|line| line.starts_with(&family) && line.contains(label));
    samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[test]
fn a_route_that_stays_goes_on_counting_and_a_gone_one_is_gone() {
    let config = |routes: &[String]| format!("{LISTENER}{}", routes.concat());
    let (all, b) = (route("/", ""), route("/b", ""));
    let served = Served::start(site(), &config(&[all.clone(), b.clone()]));
    let get = |target: &str| assert_eq!(served.kirin.get(target).status, 200);
    (0..3).for_each(|_| get("/a.txt"));
    (0..2).for_each(|_| get("/b/b.txt"));
    // A request counts when its response has been sent.
    let wait_for_counts = |expected: &[(&str, f64)]| {
        wait_for(&format!("{expected:?}"), || {
            let count = |route| sum(&served, "kirin_requests_total", &format!("route=\"{route}\""));
            expected.iter().all(|(route, wanted)| count(route) == *wanted).then_some(())
        });
    };
    wait_for_counts(&[("/", 3.0), ("/b", 2.0)]);
    // Another route before them has their old index.
    served.reload(&config(&[route("/new", ""), b.clone(), all.clone()]));
    get("/a.txt");
    wait_for_counts(&[("/", 4.0), ("/b", 2.0), ("/new", 0.0)]);
    served.reload(&config(std::slice::from_ref(&all)));
    get("/b/b.txt");
    wait_for_counts(&[("/", 5.0), ("/b", 0.0)]);
    // It begins at zero.
    served.reload(&config(&[all, b]));
    get("/b/b.txt");
    wait_for_counts(&[("/", 5.0), ("/b", 1.0)]);
    assert_eq!(sum(&served, "kirin_connections_accepted_total", ""), 8.0);
    assert_eq!(sum(&served, "kirin_reloads_total", "result=\"ok\""), 3.0);
}

#[test]
fn a_rate_limit_remembers_unless_it_is_another() {
    let limit = |rate: &str| {
        format!(
            "{LISTENER}{}",
            route("/", &format!("[[route.rate_limit]]\nrate = \"{rate}\"\nburst = 2\n"))
        )
    };
    let served = Served::start(site(), &limit("1/h"));
    let statuses =
        |count: usize| (0..count).map(|_| served.kirin.get("/a.txt").status).collect::<Vec<_>>();
    assert_eq!(statuses(3), [200, 200, 429]);
    served.reload(&format!("{}[[route]]\npath = \"/z\"\nredirect = \"/\"\n", limit("1/h")));
    assert_eq!(statuses(1), [429]);
    served.reload(&limit("2/h"));
    assert_eq!(statuses(3), [200, 200, 429]);
}

#[test]
fn the_cache_the_store_and_sessions_stay() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let backend = Backend::answering(move |_| {
        let number = counter.fetch_add(1, Ordering::Relaxed);
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 1\r\n\r\n{number}"
        )
    });
    let config = |more: &str| {
        format!(
            "{LISTENER}[store]\nmemcached = [\"unix:m.sock\"]\n[[upstream]]\nname = \"api\"\nservers = [\"{}\"]\n\
             [[route]]\npath = \"/\"\ntry = [\"store\", \"proxy:api\"]\ncache = true\n{more}",
            backend.address()
        )
    };
    let served = Served::start(site(), &config(""));
    let mut memcached = scripts::memcached(&served.site);
    memcached.set("/page", b"text/plain\r\nstored");
    assert_eq!((served.text("/page"), served.text("/x")), ("stored".into(), "0".into()));
    served.reload(&config("headers = { X-New = \"1\" }\n"));
    assert_eq!((served.text("/page"), served.text("/x")), ("stored".into(), "0".into()));
    assert_eq!(served.kirin.get("/x").field("x-new"), Some("1"));
    // The same connection of the memcached client serves on.
    memcached.set("/page", b"text/plain\r\nagain");
    assert_eq!(served.text("/page"), "again");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn the_live_table_names_the_sites_of_the_new_configuration() {
    let of_site = |name: &str| {
        format!(
            "[[site]]\nname = \"{name}\"\nhosts = [\"127.0.0.1\"]\n[[site.route]]\npath = \"/\"\ntry = [\"files:public\"]\n"
        )
    };
    let served = Served::start(site(), &format!("{LISTENER}{}", of_site("wiki")));
    let get = || {
        let mut client = served.kirin.connect();
        client.send("GET /a.txt HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        assert_eq!(client.read_reply().status, 200);
    };
    get();
    served.reload(&format!("{LISTENER}{}", of_site("shop")));
    get();
    wait_for("both sites in the table", || {
        let output = run_kirin(&served.site, &["top", "--once"]);
        let table = String::from_utf8_lossy(&output.stdout).into_owned();
        (table.contains("wiki") && table.contains("shop")).then_some(())
    });
}

#[test]
fn the_store_gets_other_memory_and_keeps_what_fits() {
    let config = |memory: &str| {
        format!(
            "{LISTENER}[store]\nmemory = \"{memory}\"\nmemcached = [\"unix:m.sock\"]\n{}",
            route("/", "")
        )
    };
    let status = |served: &Served, name: &str| {
        let output = run_kirin(&served.site, &["status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        status["store"][name].as_u64().expect("a number")
    };
    let served = Served::start(site(), &config("64MB"));
    let mut memcached = scripts::memcached(&served.site);
    let value = vec![b'v'; 100_000];
    (0..400).for_each(|number| memcached.set(&format!("item{number}"), &value));
    assert_eq!(status(&served, "items"), 400);
    let said = served.reload(&config("8MB"));
    assert_eq!(said, "[store]: memory \"64MB\" → \"8MB\"\nreloaded\n");
    wait_for("the smaller store", || {
        let is_small =
            status(&served, "limit_bytes") == 8 << 20 && status(&served, "bytes") <= 8 << 20;
        is_small.then_some(())
    });
    let left = status(&served, "items");
    assert!((40..90).contains(&left), "{left}");
    // The last one is still there, and a larger store loses none.
    assert_eq!(memcached.get("item399").as_deref(), Some(&value[..]));
    served.reload(&config("32MB"));
    wait_for("the larger store", || (status(&served, "limit_bytes") == 32 << 20).then_some(()));
    assert_eq!(status(&served, "items"), left);
    // What was set by hand stays until the file says something else about it.
    memcached.send("cache_memlimit 16\r\n");
    assert_eq!(memcached.line(), "OK");
    served.reload(&format!("{}[[route]]\npath = \"/z\"\nredirect = \"/\"\n", config("32MB")));
    assert_eq!(status(&served, "limit_bytes"), 16 << 20);
}

#[test]
fn traces_go_where_the_new_configuration_says() {
    let collector = || {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let backend = Backend::answering(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".into()
        });
        (backend, count)
    };
    let ((first, of_first), (second, of_second)) = (collector(), collector());
    let config = |collector: &Backend| {
        format!(
            "{LISTENER}[traces]\nendpoint = \"http://{}\"\n{}",
            collector.address(),
            route("/", "")
        )
    };
    let site = site().with("kirin.toml", format!("{LISTENER}{}", route("/", "")));
    let mut command = kirin_command(&site);
    command.args(["serve", "--config"]).arg(site.path("kirin.toml"));
    // The time between two exports, in milliseconds.
    let kirin = Kirin::start_command(command.env("OTEL_BSP_SCHEDULE_DELAY", "50"));
    let served = Served { kirin, site };
    served.reload(&config(&first));
    assert_eq!(served.text("/a.txt"), "a");
    wait_for("a span", || (of_first.load(Ordering::Relaxed) > 0).then_some(()));
    assert_eq!(of_second.load(Ordering::Relaxed), 0);
    served.reload(&config(&second));
    assert_eq!(served.text("/a.txt"), "a");
    wait_for("another span", || (of_second.load(Ordering::Relaxed) > 0).then_some(()));
    served.reload(&format!("{LISTENER}{}", route("/", "")));
    assert_eq!(served.text("/a.txt"), "a");
}
