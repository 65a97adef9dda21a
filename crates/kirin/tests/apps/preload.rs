//! Workers do not share the connections that an application opens while it is loaded.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};

use kirin_tests::{Kirin, Site, wait_for};
use rustix::process::{Pid, Signal};

const ASKS_A_SERVER: &str = r#"
use v5.16; use warnings; use IO::Socket::INET;
my ($loader, $server) = ($$, IO::Socket::INET->new($ENV{SERVER}) // die "no server: $!");
sub {
    my $env = shift;
    return [200, [], ["$loader $$ " . getppid]] if $env->{PATH_INFO} eq '/who';
    kill KILL => $$ if $env->{PATH_INFO} eq '/die';
    syswrite $server, "$env->{QUERY_STRING}\n";
    sysread $server, my $answer, 1000;
    [200, [], [$answer]];
};
"#;

const ASKS_SQLITE: &str = r#"
use v5.16; use warnings; use DBI;
my $loader = $$;
my $database = DBI->connect('dbi:SQLite:dbname=rows.db', '', '', { RaiseError => 1, sqlite_use_immediate_transaction => 1 });
$database->do('PRAGMA busy_timeout = 20000');
$database->do('CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, text TEXT)');
sub {
    my $env = shift;
    return [200, [], ["$loader $$ " . getppid]] if $env->{PATH_INFO} eq '/who';
    my $id = $env->{QUERY_STRING};
    $database->do('INSERT INTO rows (id, text) VALUES (?, ?)', undef, $id, "row $id");
    my ($text) = $database->selectrow_array('SELECT text FROM rows WHERE id = ?', undef, $id);
    [200, [], ["$text\n"]];
};
"#;

const HARMLESS: &str = r#"
use v5.16; use warnings; use IO::Socket::UNIX; use Socket;
open my $log, '>>', 'app.log' or die; open my $table, '<', 'app.psgi' or die; pipe my $r, my $w;
open my $temporary, '+>', undef or die;
socket my $syslog, AF_UNIX, SOCK_DGRAM, 0 or die;
open my $program, '|-', 'cat > /dev/null' or die;
my $loader = $$;
sub { [200, [], ["$loader $$ " . getppid . length "$log$table$r$w$temporary$syslog$program" x 0]] };
"#;

/// Starts a server that answers each line with the line, on the same connection.
fn start_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut to = stream.try_clone().expect("a copy");
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    // It is one write, as the worker reads it.
                    if to.write_all(format!("row {line}\n").as_bytes()).is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}

fn config(more: &str) -> String {
    format!(
        r#"
        [[listener]]
        address = "127.0.0.1:0"
        [[app]]
        name = "web"
        load = "app.psgi"
        workers = 4
        {more}
        [[route]]
        path = "/"
        try = ["app:web"]
        "#
    )
}

/// Returns the process that has loaded the application, the worker, and its parent.
fn who(kirin: &Kirin) -> [String; 3] {
    let text = kirin.get("/who").text();
    let mut words = text.split(' ').map(str::to_owned);
    std::array::from_fn(|_| words.next().expect("three numbers"))
}

fn assert_each_asker_has_its_own_row(kirin: &Kirin) {
    std::thread::scope(|scope| {
        for asker in 0..8 {
            scope.spawn(move || {
                let mut client = kirin.connect();
                for turn in 0..50 {
                    let id = asker * 1000 + turn;
                    let reply = client.get(&format!("/row?{id}"));
                    assert_eq!((reply.status, reply.text()), (200, format!("row {id}\n")));
                }
            });
        }
    });
}

#[test]
fn a_connection_made_while_loading_belongs_to_one_worker() {
    let server = start_server();
    let site = Site::new().with("app.psgi", ASKS_A_SERVER);
    let env = format!("env = {{ SERVER = \"{server}\" }}");
    let kirin = Kirin::start(&site, &config(&env));
    kirin.wait_for_log(&format!("a connection to {server}"));
    let [loader, worker, _] = who(&kirin);
    assert_eq!(loader, worker, "the worker has loaded the application");
    assert_each_asker_has_its_own_row(&kirin);

    // A replacement worker comes from a parent that has not loaded the application.
    let before = kirin.worker_pids();
    kirin.get("/die");
    wait_for("another worker", || {
        let pids = kirin.worker_pids();
        (pids.len() == 4 && pids.iter().any(|pid| !before.contains(pid))).then_some(())
    });
    assert_each_asker_has_its_own_row(&kirin);

    // A reload and a restarted parent do not share it either.
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("new generation serves");
    let [loader, worker, parent] = who(&kirin);
    assert_eq!(loader, worker);
    let parent = Pid::from_raw(parent.parse().expect("a number")).expect("a process id");
    rustix::process::kill_process(parent, Signal::KILL).expect("a signal");
    kirin.wait_for_log("app parent ended");
    wait_for("a worker of another parent", || {
        let [loader, worker, its_parent] = who(&kirin);
        (its_parent != parent.as_raw_nonzero().to_string() && loader == worker).then_some(())
    });
}

#[test]
fn a_sqlite_database_opened_while_loading_belongs_to_one_worker() {
    let site = Site::new().with("app.psgi", ASKS_SQLITE);
    let kirin = Kirin::start(&site, &config(""));
    kirin.wait_for_log("rows.db, which is opened for reading and writing");
    let [loader, worker, _] = who(&kirin);
    assert_eq!(loader, worker);
    assert_each_asker_has_its_own_row(&kirin);
}

#[test]
fn shareable_descriptors_are_shared_by_workers() {
    let site = Site::new().with("app.psgi", HARMLESS);
    let kirin = Kirin::start(&site, &config(""));
    let [loader, worker, _] = who(&kirin);
    assert_ne!(loader, worker, "{}", kirin.log());
    assert!(!kirin.log().contains("workers cannot share"), "{}", kirin.log());
}

#[test]
fn preload_decides_which_process_loads() {
    let server = start_server();
    for (preload, is_shared) in [("true", true), ("false", false), ("\"auto\"", false)] {
        let site = Site::new().with("app.psgi", ASKS_A_SERVER);
        let more = format!("preload = {preload}\nenv = {{ SERVER = \"{server}\" }}");
        let mut kirin = Kirin::start(&site, &config(&more));
        let [loader, worker, parent] = who(&kirin);
        assert_eq!(loader == parent, is_shared, "{preload}");
        assert_eq!(loader == worker, !is_shared, "{preload}");
        kirin.signal(Signal::TERM);
        assert!(kirin.wait().success(), "{preload}");
    }
}

#[test]
fn workers_that_cannot_load_new_code_leave_the_old_one_serving() {
    let site =
        Site::new().with("app.psgi", "my $l = $$; sub { [200, [], [\"$l $$ \" . getppid]] }");
    let kirin = Kirin::start(&site, &config("preload = false"));
    let [loader, worker, _] = who(&kirin);
    assert_eq!(loader, worker);
    std::fs::write(site.path("app.psgi"), "die qq(a mistake in line one\n)").expect("a file");
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("reload failed; generation 1 keeps serving");
    assert!(kirin.log().contains("a mistake in line one"), "{}", kirin.log());
    assert_eq!(kirin.get("/").status, 200);
    std::fs::write(site.path("app.psgi"), "sub { [200, [], ['new']] }").expect("a file");
    kirin.signal(Signal::HUP);
    wait_for("the new code", || (kirin.get("/").text() == "new").then_some(()));
}

#[test]
fn an_application_that_no_worker_can_load_ends_the_start() {
    let site = Site::new().with("app.psgi", "die qq(a mistake in line one\n)");
    let site = site.with("kirin.toml", config("preload = false"));
    let output = kirin_tests::run_kirin(&site, &["serve"]);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("cannot be loaded:") && text.contains("a mistake in line one"), "{text}");
}
