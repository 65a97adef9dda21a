//! New code that serves a part of the visitors beside the old code (`docs/trial.md`).

mod lost_workers;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use kirin_tests::{ADMIN, Client, Kirin, SetAtEnd, Site, run_kirin, wait_for};
use rustix::process::Signal;
use serde_json::Value;

/// The two ways in which workers get their requests.
const HAND_OVERS: [&str; 2] = ["", "shared_memory = \"0B\"\n"];

fn config(share: &str, time: &str, keys: &str) -> String {
    let deadline = if time == LONG { "10s" } else { time };
    format!(
        "threads = 2\nmetrics = \"127.0.0.1:0\"\n{ADMIN}[store]\nsession_cookie = \"sid\"\n\
         [[listener]]\naddress = \"127.0.0.1:0\"\ntrusted = [\"127.0.0.1\"]\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\ndeadline = \"{deadline}\"\n\
         trial = {{ share = \"{share}\", time = \"{time}\" }}\n{keys}\
         [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n"
    )
}

/// A time that tests wait for.
const SHORT: &str = "2s";

/// A time that no test waits for.
const LONG: &str = "1h";

/// Returns an application that does `what` first, and answers with its version.
fn app(version: &str, what: &str) -> String {
    format!(
        "use v5.16; use warnings;\nsub {{\n    my $env = shift;\n    {what}\n    \
         [200, ['Content-Type' => 'text/plain'], ['{version}']];\n}};\n"
    )
}

struct Tried {
    site: Site,
    kirin: Kirin,
}

/// Serves `one`.
fn serve(config: &str) -> Tried {
    let site = Site::new().with("app.psgi", app("one", ""));
    let kirin = Kirin::start(&site, config);
    Tried { site, kirin }
}

impl Tried {
    /// Puts an application on trial. Returns what the command prints.
    fn reload(&self, program: &str) -> String {
        std::fs::write(self.site.path("app.psgi"), program).expect("app.psgi");
        let (code, text) = self.command(&["reload", "--app", "web"]);
        assert_eq!(code, Some(0), "{text}\n{}", self.kirin.log());
        text
    }

    /// Runs a command. Returns its exit status, and what it prints.
    fn command(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let admin = wait_for("the admin listener", || {
            let log = self.kirin.log();
            let (_, rest) = log.split_once("admin on http://")?;
            Some(rest.split_once('/')?.0.to_owned())
        });
        let output = run_kirin(&self.site, &[arguments, &["--admin", &admin]].concat());
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns the status of the present or last trial.
    fn trial(&self) -> Value {
        self.kirin.status()["apps"][0]["trial"].clone()
    }

    fn count(&self, side: &str, key: &str) -> u64 {
        let trial = self.trial();
        trial[side][key].as_u64().unwrap_or_else(|| panic!("no {key} of {side}: {trial:#}"))
    }

    /// Waits until the trial has ended like this.
    fn wait_for_end(&self, state: &str) -> Value {
        wait_for("the end of the trial", || {
            let trial = self.trial();
            (trial["state"].as_str() == Some(state)).then_some(trial)
        })
    }

    /// Waits until only the new or the old code is there.
    fn wait_for_workers(&self, generation: u64) {
        wait_for("the workers of one generation", || {
            let status = self.kirin.status();
            let rings = status["apps"][0]["rings"].as_array().cloned().unwrap_or_default();
            let workers = status["apps"][0]["workers"].as_array().map(Vec::len);
            let is_of_one = rings.iter().all(|ring| ring["generation"] == generation);
            (is_of_one && workers == Some(2)).then_some(())
        });
    }
}

/// Sends a request of a visitor. Returns the status and the body.
fn visit(client: &mut Client, visitor: usize) -> (u16, String) {
    let reply =
        client.request("GET", &format!("/{visitor}"), &format!("Cookie: sid={visitor}\r\n"));
    (reply.status, reply.text())
}

#[test]
fn code_that_fails_for_one_request_in_twenty_is_given_up() {
    const VISITORS: usize = 20_000;
    for keys in HAND_OVERS {
        let tried = serve(&config("20%", LONG, keys));
        let fails = "return [500, [], ['failed']] if substr($env->{PATH_INFO}, 1) % 20 == 0;";
        let said = tried.reload(&app("two", fails));
        assert!(said.contains("on trial with 20% of the visitors for 1 h"), "{said}");
        let mut client = tried.kirin.connect();
        let (mut failed, mut sent) = (0, 0);
        for visitor in 0..VISITORS {
            sent += 1;
            failed += usize::from(visit(&mut client, visitor).0 == 500);
            if sent % 50 == 0 && tried.kirin.log().contains("the new code is given up") {
                break;
            }
        }
        let log = tried.kirin.log();
        let trial = tried.wait_for_end("given up");
        assert_eq!(trial["reason"], "more visitors get failed responses", "{trial:#}\n{log}");
        // One in twenty of one in five.
        assert!(failed > 0 && failed * 20 <= sent, "{failed} of {sent}\n{log}");
        assert_eq!(trial["new"]["failures"], failed, "{trial:#}");
        assert_eq!(trial["old"]["failures"], 0, "{trial:#}");
        let app = &tried.kirin.status()["apps"][0];
        assert_eq!(app["counters"]["trials_given_up"], 1, "{app:#}");
        let rings = app["rings"].as_array().expect("rings");
        let attached: u64 = rings.iter().filter_map(|ring| ring["workers"].as_u64()).sum();
        // The whole suite runs once more without the ring.
        let has_ring = keys.is_empty() && std::env::var("KIRIN_RING").as_deref() != Ok("0");
        assert_eq!(attached > 0, has_ring, "{app:#}");
        for visitor in 0..200 {
            assert_eq!(visit(&mut client, visitor), (200, "one".to_owned()), "{log}");
        }
        let line = log.lines().find(|line| line.contains("given up")).expect("a line");
        for part in ["new=generation 2: ", "old=generation 1: ", "(5xx "] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
}

#[test]
fn each_visitor_stays_on_one_side_by_cookie_and_by_address() {
    const VISITORS: usize = 60;
    for keys in HAND_OVERS {
        let tried = serve(&config("50%", LONG, keys));
        tried.reload(&app("two", ""));
        let mut client = tried.kirin.connect();
        let by_cookie = |client: &mut Client, visitor: usize, address: usize| {
            let fields =
                format!("Cookie: a=b; sid={visitor}\r\nX-Forwarded-For: 10.0.1.{address}\r\n");
            client.request("GET", "/", &fields).text()
        };
        let by_address = |client: &mut Client, visitor: usize, other: usize| {
            let fields = format!("X-Forwarded-For: 10.0.0.{visitor}\r\nCookie: other={other}\r\n");
            client.request("GET", "/", &fields).text()
        };
        let mut sides = |ask: &dyn Fn(&mut Client, usize, usize) -> String| {
            let first: Vec<_> = (0..VISITORS).map(|visitor| ask(&mut client, visitor, 1)).collect();
            // Another connection may be on another event loop.
            let mut other = tried.kirin.connect();
            for (visitor, side) in first.iter().enumerate() {
                assert_eq!(&ask(&mut client, visitor, 2), side, "{visitor}");
                assert_eq!(&ask(&mut other, visitor, 3), side, "{visitor}");
            }
            first
        };
        let (cookies, addresses) = (sides(&by_cookie), sides(&by_address));
        for sides in [&cookies, &addresses] {
            // Each is missing in one of 2^59 trials.
            let versions: HashSet<&str> = sides.iter().map(String::as_str).collect();
            assert_eq!(versions, HashSet::from(["one", "two"]));
        }
        let new = cookies.iter().chain(&addresses).filter(|side| *side == "two").count() * 3;
        assert_eq!(tried.count("new", "requests"), new as u64, "{:#}", tried.trial());
        assert_eq!(tried.count("old", "requests"), (VISITORS * 6 - new) as u64);
        // The next trial chooses others.
        assert_eq!(tried.command(&["reload", "--give-up"]).0, Some(0));
        tried.reload(&app("two", ""));
        assert_ne!(sides(&by_cookie), cookies);
    }
}

#[test]
fn good_code_is_promoted_when_the_time_is_over() {
    for keys in HAND_OVERS {
        let tried = serve(&config("50%", SHORT, keys));
        tried.reload(&app("two", ""));
        let mut client = tried.kirin.connect();
        let trial = wait_for("the promotion", || {
            (0..40).for_each(|visitor| assert_eq!(visit(&mut client, visitor).0, 200));
            let trial = tried.trial();
            (trial["state"] != "running").then_some(trial)
        });
        assert_eq!(trial["state"], "promoted", "{trial:#}");
        for visitor in 0..100 {
            assert_eq!(visit(&mut client, visitor).1, "two");
        }
        tried.wait_for_workers(2);
        tried.kirin.wait_for_log("trial: the new code is promoted");
        tried.kirin.wait_for_log("new generation serves");
    }
}

#[test]
fn without_traffic_new_code_is_promoted_and_the_log_says_how_little_was_seen() {
    let tried = serve(&config("5%", SHORT, ""));
    tried.reload(&app("two", ""));
    let trial = tried.wait_for_end("promoted");
    assert_eq!(trial["reason"], "its time is over, but it got few requests");
    assert_eq!(trial["new"]["requests"], 0, "{trial:#}");
    tried.kirin.wait_for_log("new=generation 2: 0 requests, 0 failed");
    assert_eq!(tried.kirin.get("/").text(), "two");
}

#[test]
fn an_operator_decides_by_hand() {
    let tried = serve(&config("50%", LONG, ""));
    for word in ["--promote", "--give-up"] {
        let (code, text) = tried.command(&["reload", word]);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("no application has new code on trial"), "{text}");
        let (code, text) = tried.command(&["reload", word, "--app", "web"]);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("app `web` has no new code on trial"), "{text}");
        let (code, text) = tried.command(&["reload", word, "--app", "wep"]);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("wep") && text.contains("web"), "{text}");
    }
    let mut client = tried.kirin.connect();
    tried.reload(&app("two", ""));
    let (_, text) = tried.command(&["status"]);
    for part in ["trial of web: 50% of the visitors, 1 h to go", "web    new ", "web    old "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (code, text) = tried.command(&["reload", "--give-up", "--app", "web"]);
    assert!(code == Some(0) && text.contains("app `web`: the new code is given up"), "{text}");
    tried.wait_for_workers(1);
    (0..50).for_each(|visitor| assert_eq!(visit(&mut client, visitor).1, "one"));
    tried.reload(&app("two", ""));
    let (code, text) = tried.command(&["reload", "--promote"]);
    assert!(code == Some(0) && text.contains("app `web`: the new code serves everybody"), "{text}");
    (0..50).for_each(|visitor| assert_eq!(visit(&mut client, visitor).1, "two"));
    tried.wait_for_workers(3);
    let (_, text) = tried.command(&["status"]);
    assert!(text.contains("trial of web: 50% of the visitors, promoted: by an operator"), "{text}");
}

#[test]
fn workers_that_crash_end_the_trial_and_the_old_code_answers() {
    for keys in HAND_OVERS {
        let tried = serve(&config("50%", LONG, keys));
        tried.reload(&app("two", "kill KILL => $$;"));
        let mut client = tried.kirin.connect();
        for visitor in 0..1000 {
            assert_eq!(visit(&mut client, visitor), (200, "one".to_owned()), "visitor {visitor}");
            if tried.kirin.log().contains("the new code is given up") {
                break;
            }
        }
        let trial = tried.wait_for_end("given up");
        let reason = "its workers end one after the other and answer nothing";
        assert_eq!(trial["reason"], reason, "{trial:#}");
        assert!(trial["new"]["lost"].as_u64() > Some(0), "{trial:#}");
        assert_eq!(trial["new"]["requests"], trial["new"]["lost"], "{trial:#}");
        tried.wait_for_workers(1);
        (0..50).for_each(|visitor| assert_eq!(visit(&mut client, visitor).1, "one"));
    }
}

#[test]
fn a_trial_ends_with_the_app_parent_of_the_new_code() {
    let tried = serve(&config("50%", LONG, ""));
    tried.reload(&app("two", "kill KILL => getppid if $env->{PATH_INFO} eq '/parent';"));
    let mut client = tried.kirin.connect();
    wait_for("a visitor of the new code to end its parent", || {
        for visitor in 0..20 {
            client.request("GET", "/parent", &format!("Cookie: sid={visitor}\r\n"));
        }
        (tried.trial()["state"] == "given up").then_some(())
    });
    let reason = tried.trial()["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("SIGKILL") || reason.contains("signal: 9"), "{reason}");
    (0..50).for_each(|visitor| assert_eq!(visit(&mut client, visitor).1, "one"));
}

#[test]
fn newer_code_replaces_the_code_on_trial() {
    let tried = serve(&config("50%", LONG, ""));
    tried.reload(&app("two", ""));
    tried.reload(&app("three", ""));
    tried.kirin.wait_for_log("generation 3 is newer");
    let mut client = tried.kirin.connect();
    let versions: HashSet<_> = (0..60).map(|visitor| visit(&mut client, visitor).1).collect();
    assert_eq!(versions, HashSet::from(["one".to_owned(), "three".to_owned()]));
    // Code that cannot be loaded changes nothing.
    std::fs::write(tried.site.path("app.psgi"), "die 'no table'").expect("app.psgi");
    let (code, text) = tried.command(&["reload", "--app", "web"]);
    assert!(code == Some(1) && text.contains("no table"), "{text}");
    let trial = tried.trial();
    assert_eq!((&trial["state"], &trial["new"]["generation"]), (&"running".into(), &3.into()));
    assert_eq!(trial["old"]["generation"], 1, "{trial:#}");
}

#[test]
fn a_change_of_trial_holds_for_the_next_one_and_loads_nothing() {
    let tried = serve(&config("50%", LONG, ""));
    tried.reload(&app("two", ""));
    let reload = |config: &str| {
        std::fs::write(tried.site.path("kirin.toml"), config).expect("kirin.toml");
        let (code, text) = tried.command(&["reload"]);
        assert_eq!(code, Some(0), "{text}");
        text
    };
    reload(&config("20%", LONG, ""));
    assert_eq!(tried.trial()["share"], "50%");
    tried.reload(&app("three", ""));
    assert_eq!(tried.trial()["share"], "20%");
    let without: String = config("20%", LONG, "")
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("trial"))
        .collect();
    reload(&without);
    assert_eq!(tried.trial()["state"], "running");
    // Without a trial, new code serves everybody at once, and ends the trial of the older.
    tried.reload(&app("four", ""));
    assert_eq!(tried.trial()["state"], "given up", "{:#}", tried.trial());
    let mut client = tried.kirin.connect();
    (0..50).for_each(|visitor| assert_eq!(visit(&mut client, visitor).1, "four"));
    // Only reloads of the application have started a parent.
    assert_eq!(tried.kirin.log().matches("app parent started").count(), 4);
}

#[test]
fn no_request_is_lost_when_a_trial_begins_and_ends() {
    for keys in HAND_OVERS {
        let tried = serve(&config("50%", LONG, keys));
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _end = SetAtEnd(&is_over);
            let loads: Vec<_> = (0..4)
                .map(|load| {
                    let (kirin, is_over) = (&tried.kirin, &is_over);
                    scope.spawn(move || {
                        let mut client = kirin.connect();
                        let mut versions = HashSet::new();
                        for visitor in 0.. {
                            let (status, text) = visit(&mut client, visitor * 4 + load);
                            assert_eq!(status, 200, "{text}\n{}", kirin.log());
                            versions.insert(text);
                            if is_over.load(Ordering::Relaxed) {
                                break;
                            }
                        }
                        versions
                    })
                })
                .collect();
            for (number, word) in ["--promote", "--give-up", "--promote"].iter().enumerate() {
                tried.reload(&app(&format!("version {number}"), ""));
                wait_for("requests to both", || {
                    let both = [tried.count("new", "requests"), tried.count("old", "requests")];
                    both.iter().all(|requests| *requests > 50).then_some(())
                });
                assert_eq!(tried.command(&["reload", word]).0, Some(0));
            }
            is_over.store(true, Ordering::Relaxed);
            let seen: HashSet<_> =
                loads.into_iter().flat_map(|load| load.join().unwrap()).collect();
            let expected = ["one", "version 0", "version 1", "version 2"].map(str::to_owned);
            assert_eq!(seen, HashSet::from(expected));
        });
        assert_eq!(tried.kirin.status()["apps"][0]["counters"]["failed"], 0);
    }
}

#[test]
fn a_hang_of_the_new_code_is_a_failure_of_its_visitors() {
    let tried = serve(&config("20%", LONG, "").replace("10s", "1s"));
    tried.reload(&app("two", "sleep 1 while 1;"));
    // Only visitors of the new code wait, each on its own connection.
    let mut clients: Vec<_> = (0..100).map(|_| tried.kirin.connect()).collect();
    for (visitor, client) in clients.iter_mut().enumerate() {
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: sid={visitor}\r\n\r\n"));
    }
    let trial = tried.wait_for_end("given up");
    assert!(trial["new"]["overdue"].as_u64() > Some(0), "{trial:#}");
    for client in &mut clients {
        let reply = client.read_reply();
        assert!(reply.status == 504 || reply.text() == "one", "{reply:?}");
    }
}

#[test]
fn metrics_show_both_generations_and_the_end() {
    let tried = serve(&config("50%", LONG, ""));
    let series = |name: &str| {
        let address = wait_for("the address of metrics", || {
            let log = tried.kirin.log();
            let (_, rest) = log.split_once("metrics on http://")?;
            rest.split_once('/')?.0.parse().ok()
        });
        let mut client = Client::connect(address);
        client.send("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
        let text = client.read_reply().text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.map(|value: f64| value as u64)
    };
    assert_eq!(series("kirin_app_trial{app=\"web\"}"), Some(0));
    tried.reload(&app("two", ""));
    let mut client = tried.kirin.connect();
    let versions = (0..60).map(|visitor| visit(&mut client, visitor).1);
    let new = versions.filter(|version| version == "two").count() as u64;
    assert_eq!(series("kirin_app_trial{app=\"web\"}"), Some(1));
    for (generation, count) in [("new", new), ("old", 60 - new)] {
        let labels = format!("{{app=\"web\",generation=\"{generation}\",outcome=\"ok\"}}");
        assert_eq!(series(&format!("kirin_app_trial_requests{labels}")), Some(count));
    }
    let failed = "kirin_app_trial_visitors{app=\"web\",generation=\"new\",response=\"failed\"}";
    assert_eq!(series(failed), Some(0));
    assert_eq!(tried.command(&["reload", "--give-up"]).0, Some(0));
    assert_eq!(series("kirin_app_trial{app=\"web\"}"), Some(0));
    assert_eq!(series("kirin_app_reloads_total{app=\"web\",result=\"given_up\"}"), Some(0));
}

#[test]
fn code_that_is_much_slower_is_given_up() {
    let tried = serve(&config("20%", LONG, "").replace("workers = 2", "workers = 1"));
    tried.reload(&app("two", "select undef, undef, undef, 0.15;"));
    let mut client = tried.kirin.connect();
    for visitor in 0..2000 {
        assert_eq!(visit(&mut client, visitor).0, 200);
        if visitor % 10 == 0 && tried.kirin.log().contains("the new code is given up") {
            break;
        }
    }
    let trial = tried.wait_for_end("given up");
    assert_eq!(trial["reason"], "more visitors get slow responses", "{trial:#}");
    assert_eq!(trial["new"]["failures"], 0, "{trial:#}");
}

#[test]
fn workers_with_many_requests_at_the_same_time_are_tried() {
    const VISITORS: usize = 40;
    let program = |version: &str| {
        format!(
            "import asyncio, os\nasync def app(scope, receive, send):\n    \
             if scope['type'] != 'http':\n        raise NotImplementedError\n    \
             open('begun.' + scope['path'][1:], 'w').close()\n    \
             while not os.path.exists('go'):\n        await asyncio.sleep(0.01)\n    \
             await send({{'type': 'http.response.start', 'status': 200, 'headers': []}})\n    \
             await send({{'type': 'http.response.body', 'body': b'{version}'}})\n"
        )
    };
    let site = Site::new().with("app.py", program("one")).with("go", "");
    let config = config("50%", LONG, "").replace("app.psgi", "app.py:app");
    let tried = Tried { kirin: Kirin::start(&site, &config), site };
    std::fs::write(tried.site.path("app.py"), program("two")).expect("app.py");
    assert_eq!(tried.command(&["reload", "--app", "web"]).0, Some(0));
    for word in ["--give-up", "--promote"] {
        std::fs::remove_file(tried.site.path("go")).expect("remove");
        let clients = (0..VISITORS).map(|visitor| {
            let mut client = tried.kirin.connect();
            client.send(format!(
                "GET /{word}.{visitor} HTTP/1.1\r\nHost: a\r\nCookie: sid={visitor}\r\n\r\n"
            ));
            client
        });
        let clients: Vec<Client> = clients.collect();
        // The workers of both sides take more connections when requests wait.
        tried.site.wait_for_files(&format!("begun.{word}."), VISITORS);
        let (code, text) = tried.command(&["reload", word]);
        assert_eq!(code, Some(0), "{text}");
        std::fs::write(tried.site.path("go"), "").expect("a file");
        let answers = clients.into_iter().map(|mut client| client.read_reply());
        let versions: HashSet<_> = answers
            .map(|reply| {
                assert_eq!(reply.status, 200, "{}", tried.kirin.log());
                reply.text()
            })
            .collect();
        assert_eq!(versions, HashSet::from(["one".to_owned(), "two".to_owned()]), "{word}");
        if word == "--give-up" {
            assert_eq!(tried.kirin.get("/x").text(), "one");
            assert_eq!(tried.command(&["reload", "--app", "web"]).0, Some(0));
        }
    }
    assert_eq!(tried.kirin.get("/x").text(), "two");
}

#[test]
fn hup_puts_each_application_with_a_trial_on_trial() {
    let more = "[[app]]\nname = \"api\"\nload = \"api.psgi\"\nworkers = 1\n\
                [[app]]\nname = \"wiki\"\nload = \"app.psgi\"\nworkers = 1\n\
                trial = { share = \"50%\", time = \"1h\" }\n\
                [[route]]\npath = \"/api\"\ntry = [\"app:api\"]\n\
                [[route]]\npath = \"/wiki\"\ntry = [\"app:wiki\"]\n";
    let config = config("50%", LONG, "") + more;
    let site = Site::new().with("app.psgi", app("one", "")).with("api.psgi", app("one", ""));
    let tried = Tried { kirin: Kirin::start(&site, &config), site };
    for file in ["app.psgi", "api.psgi"] {
        std::fs::write(tried.site.path(file), app("two", "")).expect("a program");
    }
    tried.kirin.signal(Signal::HUP);
    let states = |expected: [Option<&str>; 3]| {
        wait_for("the trials", || {
            let status = tried.kirin.status();
            let apps = status["apps"].as_array().expect("apps");
            let found: Vec<_> = apps.iter().map(|app| app["trial"]["state"].as_str()).collect();
            (found == expected).then_some(())
        });
    };
    states([Some("running"), None, Some("running")]);
    wait_for("the new code of `api`", || (tried.kirin.get("/api").text() == "two").then_some(()));
    let (code, text) = tried.command(&["reload", "--give-up", "--app", "web", "--app", "api"]);
    assert_eq!(code, Some(1), "{text}");
    states([Some("running"), None, Some("running")]);
    assert_eq!(tried.command(&["reload", "--give-up", "--app", "web"]).0, Some(0));
    states([Some("given up"), None, Some("running")]);
    assert_eq!(tried.command(&["reload", "--promote"]).0, Some(0));
    states([Some("given up"), None, Some("promoted")]);
    let texts = ["/", "/api", "/wiki"].map(|path| tried.kirin.get(path).text());
    assert_eq!(texts, ["one", "two", "two"]);
}

#[test]
fn a_program_that_stops_ends_a_trial_undecided() {
    let mut tried = serve(&config("50%", LONG, ""));
    tried.reload(&app("two", ""));
    tried.kirin.signal(Signal::TERM);
    assert!(tried.kirin.wait().success(), "{}", tried.kirin.log());
    tried.kirin.wait_for_log("trial: undecided, because the application stops");
}
