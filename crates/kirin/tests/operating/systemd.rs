//! The test plays systemd's side of a service: sockets as in sd_listen_fds(3), notifications as in
//! sd_notify(3).

use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

use kirin_tests::{Client, Kirin, Memcached, Site, kirin_command, run_kirin, wait_for, wait_limit};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const APP: &str = r#"
my $seen = join ',', sort grep { /^(?:LISTEN_|NOTIFY_SOCKET)/ } keys %ENV;
sub { [200, ['Content-Type' => 'text/plain'], ["seen: [$seen]"]] };
"#;

/// Listens on the addresses and paths up to `--`, writes its addresses to `addresses`, and becomes
/// the program behind it. The sockets are descriptors from 3 on. WITHOUT_PID leaves out LISTEN_PID.
const STARTER: &str = r#"
use v5.16; use warnings; use IO::Socket::INET; use IO::Socket::UNIX; use POSIX ();
my (@sockets, @addresses);
while (defined(my $address = shift)) {
    last if $address eq '--';
    push @sockets, $address =~ m{/} ? IO::Socket::UNIX->new(Local => $address, Listen => 64)
        : IO::Socket::INET->new(LocalAddr => $address, Listen => 64, Proto => 'tcp');
    push @addresses, $address =~ m{/} ? $address : join ':', $sockets[-1]->sockhost, $sockets[-1]->sockport;
}
open my $file, '>', 'addresses.new' or die $!;
print {$file} map { "$_\n" } @addresses;
close $file;
# First away from where they are to be.
POSIX::dup2(fileno $sockets[$_], 40 + $_) // die $! for 0 .. $#sockets;
POSIX::dup2(40 + $_, 3 + $_) // die $! for 0 .. $#sockets;
POSIX::close(40 + $_) for 0 .. $#sockets;
$ENV{LISTEN_FDS} = @sockets;
$ENV{LISTEN_PID} = $ENV{WITHOUT_PID} ? $$ + 1 : $$;
rename 'addresses.new', 'addresses' or die $!;
exec @ARGV or die $!;
"#;

fn site() -> Site {
    Site::new().with("app.psgi", APP)
}

/// Starts Kirin with sockets on these addresses.
fn with_sockets(site: &Site, addresses: &[&str], arguments: &[&str]) -> Command {
    let kirin = kirin_command(site);
    let mut command = Command::new("perl");
    command
        .args(["-e", STARTER, "--"])
        .args(addresses)
        .arg("--")
        .arg(kirin.get_program())
        .args(arguments);
    command.current_dir(site.root()).env_remove("KIRIN_LOG");
    command.env("KIRIN_ADMIN_DIRECTORY", site.admin_directory());
    command
}

/// Returns the status of the Kirin of a site.
fn status(site: &Site) -> Value {
    let output = run_kirin(site, &["status", "--json"]);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Returns the addresses of the starter.
fn addresses(site: &Site) -> Vec<String> {
    let text = wait_for("the sockets", || std::fs::read_to_string(site.path("addresses")).ok());
    text.lines().map(str::to_owned).collect()
}

#[test]
fn after_an_upgrade_the_admin_socket_is_not_served_to_clients() {
    let site = site();
    let arguments = ["serve", "app.psgi", "--pid-file", "pid"];
    let mut first = Kirin::start_command(&mut with_sockets(&site, &["127.0.0.1:0"], &arguments));
    let urls = |status: &Value| status["serving"]["urls"].clone();
    let before = status(&site);
    assert_eq!(urls(&before), serde_json::json!([format!("http://{}/", addresses(&site)[0])]));
    first.signal(Signal::USR2);
    assert!(first.wait().success(), "{}", first.log());
    let after = status(&site);
    assert_eq!(urls(&after), urls(&before));
    assert_ne!(after["pid"], before["pid"]);
    let text = std::fs::read_to_string(site.path("pid")).expect("pid");
    let pid: i32 = text.trim().parse().expect("a pid");
    assert_eq!(after["pid"], pid);
    kill_process(Pid::from_raw(pid).expect("a pid"), Signal::TERM).expect("kill");
    wait_for("its end", || (!site.path("pid").exists()).then_some(()));
}

#[test]
fn every_socket_serves_without_a_configuration() {
    let site = site();
    let kirin = Kirin::start_command(&mut with_sockets(
        &site,
        &["127.0.0.1:0", "127.0.0.1:0"],
        &["serve", "app.psgi"],
    ));
    for address in addresses(&site) {
        let address: SocketAddr = address.parse().expect("an address");
        assert_eq!(Client::connect(address).get("/").text(), "seen: []");
    }
    assert!(!kirin.log().contains("127.0.0.1:8080"), "{}", kirin.log());
}

#[test]
fn a_configuration_finds_its_sockets_by_their_addresses() {
    // The port is known only when the socket exists. The configuration is written before the
    // program reads it.
    let site = site();
    let (store, admin) = (site.path("store.sock"), site.path("admin.sock"));
    let script = "until [ -e addresses ]; do sleep 0.01; done; read address < addresses; \
                  printf '[[listener]]\\naddress = \"%s\"\\n[store]\\nmemcached = [\"unix:store.sock\"]\\n\
                  [admin]\\naddress = \"unix:admin.sock\"\\n[[app]]\\nname = \"web\"\\nload = \"app.psgi\"\\n[[route]]\\npath = \"/\"\\ntry = [\"store\", \"app:web\"]\\n' \
                  \"$address\" > kirin.toml; exec \"$0\" serve";
    let mut command = Command::new("perl");
    command.args([
        "-e",
        STARTER,
        "--",
        "127.0.0.1:0",
        store.to_str().expect("UTF-8"),
        admin.to_str().expect("UTF-8"),
        "--",
        "sh",
        "-c",
        script,
    ]);
    command
        .arg(kirin_command(&site).get_program())
        .current_dir(site.root())
        .env_remove("KIRIN_LOG");
    let kirin = Kirin::start_command(&mut command);
    Memcached::connect(&store).set("/page", b"text/plain\r\nfrom the store");
    assert_eq!(kirin.get("/page").text(), "from the store");
    assert_eq!(kirin.get("/").text(), "seen: []");
    let output = run_kirin(&site, &["purge", "--key", "/page", "--admin", "unix:admin.sock"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "purged 1 of 1 keys\n", "{output:?}");
}

#[test]
fn sockets_for_another_process_are_left_alone() {
    let site = site();
    let mut command =
        with_sockets(&site, &["127.0.0.1:0"], &["serve", "app.psgi", "--listen", "127.0.0.1:0"]);
    let kirin = Kirin::start_command(command.env("WITHOUT_PID", "1"));
    let theirs = addresses(&site).remove(0);
    assert_ne!(kirin.address().to_string(), theirs);
    assert_eq!(kirin.get("/").text(), "seen: []");
}

#[test]
fn an_unused_socket_is_reported_with_its_name() {
    let site = site();
    let mut command =
        with_sockets(&site, &["127.0.0.1:0"], &["serve", "app.psgi", "--listen", "127.0.0.1:0"]);
    let mut kirin = Kirin::spawn_command(command.env("LISTEN_FDNAMES", "admin"));
    let theirs = addresses(&site).remove(0);
    assert_eq!(kirin.wait().code(), Some(1));
    kirin.wait_for_log(&format!(
        "kirin: systemd has handed over {theirs} (admin), which no listener"
    ));
}

fn next_notification(socket: &UnixDatagram) -> String {
    let mut buffer = [0; 4096];
    let count = socket.recv(&mut buffer).expect("a notification");
    String::from_utf8_lossy(&buffer[..count]).into_owned()
}

fn notify_socket(path: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(path).expect("bind");
    socket.set_read_timeout(Some(wait_limit())).expect("read timeout");
    socket
}

#[test]
fn systemd_hears_when_the_program_serves_reloads_and_stops() {
    let site = site();
    let systemd = notify_socket(&site.path("notify"));
    let mut command = kirin_command(&site);
    command
        .args(["serve", "app.psgi", "--listen", "127.0.0.1:0"])
        .env("NOTIFY_SOCKET", site.path("notify"));
    let mut kirin = Kirin::start_command(&mut command);
    assert_eq!(next_notification(&systemd), "READY=1");
    assert_eq!(kirin.get("/").text(), "seen: []");

    kirin.signal(Signal::HUP);
    let reloading = next_notification(&systemd);
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(next_notification(&systemd), "READY=1");
    kirin.wait_for_log("new generation serves");

    std::fs::write(site.path("app.psgi"), "die 'broken'").expect("app.psgi");
    kirin.signal(Signal::HUP);
    assert!(next_notification(&systemd).starts_with("RELOADING=1\n"));
    assert_eq!(next_notification(&systemd), "READY=1");
    kirin.wait_for_log("reload failed");

    kirin.signal(Signal::TERM);
    assert_eq!(next_notification(&systemd), "STOPPING=1");
    assert_eq!(kirin.wait().code(), Some(0));
}

#[test]
fn systemd_does_not_hear_of_readiness_before_the_application_is_loaded() {
    let site = Site::new()
        .with("app.psgi", "select undef, undef, undef, 0.01 until -e 'go'; sub { [200, [], []] }");
    let systemd = notify_socket(&site.path("notify"));
    let mut command = kirin_command(&site);
    command
        .args(["serve", "app.psgi", "--listen", "127.0.0.1:0"])
        .env("NOTIFY_SOCKET", site.path("notify"));
    let kirin = Kirin::spawn_command(&mut command);
    kirin.wait_for_log("app parent started");
    systemd.set_nonblocking(true).expect("non-blocking");
    assert!(systemd.recv(&mut [0; 64]).is_err(), "said too early");
    systemd.set_nonblocking(false).expect("blocking");
    std::fs::write(site.path("go"), "").expect("a file");
    assert_eq!(next_notification(&systemd), "READY=1");
}
