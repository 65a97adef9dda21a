//! `kirin status`, `kirin purge` and `kirin explain` without `[admin]`: the default admin socket,
//! through the built program.

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kirin_tests::{Kirin, Site, binary, kirin_command, run_kirin, wait_for};
use kirin_user::user_name;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;

const APP: &str = r#"sub { [200, ['Content-Type' => 'text/plain'], ["application $$"]] };"#;

const CONFIG: &str = r#"
[[listener]]
address = "127.0.0.1:0"
[store]
memory = "8MB"
[[route]]
path = "/"
try = ["store", "files:public"]
"#;

const SERVE_APP: [&str; 4] = ["serve", "app.psgi", "--listen", "0"];
const SERVE_FILES: [&str; 4] = ["serve", "./public", "--listen", "0"];

fn site() -> Site {
    Site::new()
        .with("app.psgi", APP)
        .with("public/index.html", "index")
        .with("conf/kirin.toml", CONFIG.replace("files:public", "files:../public"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Returns the process id of the Kirin that a command finds in a directory.
fn found_in(site: &Site, directory: &Path, options: &[&str]) -> Option<u32> {
    let mut command = kirin_command(site);
    command.args(["status", "--json"]).args(options).current_dir(directory);
    let output = command.output().expect("kirin runs");
    let json: Value = serde_json::from_slice(&output.stdout).ok()?;
    json["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())
}

fn found(site: &Site, options: &[&str]) -> Option<u32> {
    found_in(site, site.root(), options)
}

/// Returns the directory of the default sockets of this user.
fn own_directory(site: &Site) -> PathBuf {
    site.admin_directory().join(user_name(geteuid().as_raw()))
}

/// Returns the default sockets of a site.
fn sockets(site: &Site) -> Vec<PathBuf> {
    let entries = fs::read_dir(own_directory(site)).into_iter().flatten().flatten();
    let sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    sockets.map(|entry| entry.path()).collect()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it exists").mode() & 0o777
}

#[test]
fn an_application_is_seen_and_purged_without_a_configuration() {
    let site = site();
    let mut kirin = Kirin::start_with(&site, &SERVE_APP);
    kirin.get("/");
    let output = run_kirin(&site, &["status"]);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    for part in [
        format!("kirin {}, process {}, up ", env!("CARGO_PKG_VERSION"), kirin.pid()),
        format!("serves        {}\n", site.path("app.psgi").display()),
        format!("listens on    http://{}/\n", kirin.address()),
        "\nweb          ready".into(),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    assert!(!text.contains('\x1b'), "no colours in a pipe: {text}");
    let output = run_kirin(&site, &["purge", "--prefix", "/"]);
    assert_eq!(said(&output), "purged 1 of 1 prefixes\n");
    kirin.wait_for_log("purged by admin");
    let output = run_kirin(&site, &["explain", "GET", "http://127.0.0.1:8080/x"]);
    let text = said(&output);
    assert!(text.contains("store: there is no page") && text.contains("app:web"), "{text}");

    let all = sockets(&site);
    let [socket] = all.as_slice() else { panic!("{all:?}") };
    let name = socket.file_name().expect("a name").to_string_lossy();
    assert!(name.contains("app.psgi"), "{name}");
    assert_eq!((mode(socket), mode(&own_directory(&site))), (0o600, 0o700));
    kirin.signal(Signal::TERM);
    kirin.wait();
    assert!(sockets(&site).is_empty(), "{:?}", sockets(&site));
    let output = run_kirin(&site, &["status"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("no Kirin of this user is running"), "{}", said(&output));
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn a_directory_is_found_from_inside_and_from_where_it_was_started() {
    let site = site();
    let kirin = Kirin::start_with(&site, &SERVE_FILES);
    let pid = Some(kirin.pid());
    assert_eq!(found(&site, &[]), pid);
    assert_eq!(found_in(&site, &site.path("public"), &[]), pid);
    // It is the only one.
    assert_eq!(found_in(&site, Path::new("/"), &[]), pid);
    for target in ["public", "./public/", "conf/../public"] {
        assert_eq!(found(&site, &["--target", target]), pid, "{target}");
    }
    symlink(site.path("public"), site.path("link")).expect("a link");
    assert_eq!(found(&site, &["--target", "link"]), pid);
    for (target, message) in [
        ("app.psgi", "no Kirin is running with this target; `kirin serve "),
        ("http://127.0.0.1:1", "`kirin serve http://127.0.0.1:1` starts it"),
    ] {
        let output = run_kirin(&site, &["status", "--target", target]);
        assert_eq!(output.status.code(), Some(1), "{target}");
        let text = said(&output);
        let other = format!("process {}   --target {}", kirin.pid(), site.path("public").display());
        assert!(text.contains(message) && text.contains(&other), "{text}");
    }
}

#[test]
fn a_configuration_without_admin_is_found_by_its_file() {
    let site = site();
    let kirin = Kirin::start_with(&site, &["serve", "--config", "conf/kirin.toml"]);
    let pid = Some(kirin.pid());
    let absolute = site.path("conf/kirin.toml").display().to_string();
    for options in [&["--config", "conf/kirin.toml"][..], &["-c", &absolute], &[]] {
        assert_eq!(found(&site, options), pid, "{options:?}");
    }
    // In this directory the file is the default.
    assert_eq!(found_in(&site, &site.path("conf"), &[]), pid);
    let output = run_kirin(&site, &["purge", "-k", "/x", "-c", "conf/kirin.toml"]);
    assert_eq!(said(&output), "purged 0 of 1 keys\n");
    let explain = ["explain", "GET", "http://127.0.0.1/x"];
    for options in [&["-c", "conf/kirin.toml"][..], &[]] {
        let output = run_kirin(&site, &[&explain[..], options].concat());
        assert!(said(&output).contains("store: there is no page"), "{}", said(&output));
    }
    // A file of the working directory means the Kirin of this file and no other one.
    fs::write(site.path("kirin.toml"), CONFIG).expect("kirin.toml");
    let output = run_kirin(&site, &["status"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("no Kirin is running with this configuration"), "{text}");
    assert!(text.contains(&format!("--config {absolute}")), "{text}");
}

#[test]
fn a_configuration_with_admin_is_found_from_everywhere() {
    let site = site().with("other/empty", "");
    let config = CONFIG.replace("files:public", "files:../public");
    let admin = "[admin]\naddress = \"127.0.0.1:0\"\n";
    fs::write(site.path("conf/kirin.toml"), format!("{config}{admin}")).expect("kirin.toml");
    let kirin = Kirin::start_with(&site, &["serve", "--config", "conf/kirin.toml"]);
    let pid = Some(kirin.pid());
    assert_eq!(found_in(&site, &site.path("other"), &[]), pid);
    assert_eq!(found(&site, &[]), pid);
    // An address may be copied from the log.
    let log = kirin.log();
    let (_, logged) = log.split_once("admin on ").expect("a line about the admin listener");
    let url = logged.split_whitespace().next().expect("an address");
    assert!(url.starts_with("http://127.0.0.1:"), "{log}");
    for address in [url, url.trim_end_matches('/'), &url["http://".len()..url.len() - 1]] {
        assert_eq!(found(&site, &["--admin", address]), pid, "{address}");
    }
    let output = run_kirin(&site, &["status", "--admin", "https://127.0.0.1:1/"]);
    assert!(said(&output).contains("https://127.0.0.1:1/"), "{}", said(&output));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn of_several_the_one_of_the_directory_is_chosen_or_they_are_listed() {
    let site = site().with("other/public/index.html", "other");
    let app = Kirin::start_with(&site, &SERVE_APP);
    let other = site.path("other");
    let mut command = kirin_command(&site);
    let files = Kirin::start_command(command.args(SERVE_FILES).current_dir(&other));
    assert_eq!(found(&site, &[]), Some(app.pid()));
    assert_eq!(found_in(&site, &other, &[]), Some(files.pid()));
    let mut command = kirin_command(&site);
    let output = command.arg("status").current_dir("/").output().expect("kirin runs");
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in [
        "several Kirins are running; choose one by the option".into(),
        format!("process {}   --target {}", app.pid(), site.path("app.psgi").display()),
        format!("process {}   --target {}", files.pid(), other.join("public").display()),
        format!("http://{}/", files.address()),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    let target = other.join("public").display().to_string();
    assert_eq!(found_in(&site, Path::new("/"), &["--target", &target]), Some(files.pid()));
}

#[test]
fn a_session_has_the_socket_where_no_directory_is_named() {
    let site = site();
    let session = tempfile::tempdir().expect("a session");
    let in_session = |command: &mut Command| {
        command.env_remove("KIRIN_ADMIN_DIRECTORY").env("XDG_RUNTIME_DIR", session.path());
    };
    let mut command = kirin_command(&site);
    in_session(command.args(["serve", "--config", "conf/kirin.toml"]));
    let kirin = Kirin::start_command(&mut command);
    let sockets = fs::read_dir(session.path().join("kirin")).expect("the directory").count();
    assert_eq!((sockets, mode(&session.path().join("kirin"))), (1, 0o700), "{}", kirin.log());
    let status = |is_in_session: bool| {
        let mut command = kirin_command(&site);
        command.args(["status", "--json", "--config", "conf/kirin.toml"]);
        if is_in_session {
            in_session(&mut command);
        }
        command.output().expect("kirin runs")
    };
    let output = status(true);
    let json: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
    assert_eq!(json["pid"].as_u64(), Some(u64::from(kirin.pid())));
    // `KIRIN_ADMIN_DIRECTORY` takes the place of all other directories.
    let output = status(false);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
}

#[test]
fn a_second_kirin_leaves_the_socket_of_the_first_alone_until_it_ends() {
    let site = site();
    let mut first = Kirin::start_with(&site, &SERVE_APP);
    let second = Kirin::start_with(&site, &SERVE_APP);
    second.wait_for_log("`kirin status` reaches another Kirin");
    assert_eq!(second.log().matches("WARN").count(), 1, "{}", second.log());
    assert!(second.get("/x").text().starts_with("application"), "it serves");
    assert_eq!(found(&site, &[]), Some(first.pid()));
    first.signal(Signal::TERM);
    first.wait();
    wait_for("the second to have the socket", || {
        (found(&site, &[]) == Some(second.pid())).then_some(())
    });
    let all = sockets(&site);
    assert_eq!(all.iter().map(|path| mode(path)).collect::<Vec<_>>(), [0o600]);
    drop(second);
    assert!(sockets(&site).is_empty(), "{:?}", sockets(&site));
}

#[test]
fn the_socket_of_a_killed_kirin_is_replaced() {
    let site = site();
    let mut killed = Kirin::start_with(&site, &SERVE_FILES);
    killed.signal(Signal::KILL);
    killed.wait();
    let left = sockets(&site);
    assert_eq!(left.len(), 1);
    let output = run_kirin(&site, &["status"]);
    assert!(said(&output).contains("no Kirin of this user is running"), "{}", said(&output));
    let kirin = Kirin::start_with(&site, &SERVE_FILES);
    assert_eq!(found(&site, &[]), Some(kirin.pid()));
    assert_eq!(sockets(&site), left, "under the same name");
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn a_directory_that_others_could_change_is_refused_and_kirin_serves() {
    type Squat = fn(&Path);
    let squats: [(&str, Squat); 4] = [
        ("is a symbolic link", |path| {
            let target = path.with_extension("target");
            fs::create_dir(&target).expect("a directory");
            symlink(target, path).expect("a link");
        }),
        ("can be written by others (its mode is 777)", |path| {
            fs::create_dir(path).expect("a directory");
            fs::set_permissions(path, Permissions::from_mode(0o777)).expect("a mode");
        }),
        ("is not a directory", |path| fs::write(path, "").expect("a file")),
        ("belongs to nobody, and not to root", |path| {
            fs::create_dir(path).expect("a directory");
            let chown = Command::new("chown").arg("nobody").arg(path).status();
            assert!(chown.expect("chown").success());
        }),
    ];
    for (why, squat) in squats {
        if why.starts_with("belongs") && !geteuid().is_root() {
            continue;
        }
        let site = site();
        squat(&own_directory(&site));
        let mut kirin = Kirin::start_with(&site, &SERVE_FILES);
        kirin.wait_for_log(why);
        assert_eq!(kirin.log().matches("WARN").count(), 1, "{why}: {}", kirin.log());
        assert_eq!(kirin.get("/").text(), "index", "{why}");
        // A client does not ask what listens there either.
        let output = run_kirin(&site, &["status"]);
        assert_eq!(output.status.code(), Some(1), "{why}: {}", said(&output));
        kirin.signal(Signal::TERM);
        assert!(kirin.wait().success(), "{why}: {}", kirin.log());
    }
}

#[test]
fn a_file_in_the_place_of_the_socket_does_not_keep_kirin_from_serving() {
    let site = site();
    drop(Kirin::start_with(&site, &SERVE_FILES));
    let mut killed = Kirin::start_with(&site, &SERVE_FILES);
    killed.signal(Signal::KILL);
    killed.wait();
    let socket = sockets(&site).remove(0);
    fs::remove_file(&socket).expect("the socket");
    fs::write(&socket, "mine").expect("a file");
    let kirin = Kirin::start_with(&site, &SERVE_FILES);
    kirin.wait_for_log("it exists and is not a socket");
    assert_eq!(kirin.get("/").text(), "index");
    drop(kirin);
    assert_eq!(fs::read(&socket).expect("the file"), b"mine");
}

#[test]
fn the_next_program_of_an_upgrade_has_the_socket() {
    let site = site();
    let arguments = [&SERVE_APP[..], &["--pid-file", "pid"]].concat();
    let mut first = Kirin::start_with(&site, &arguments);
    let left = sockets(&site);
    first.signal(Signal::USR2);
    assert!(first.wait().success(), "{}", first.log());
    let next = fs::read_to_string(site.path("pid")).expect("pid");
    let next: i32 = next.trim().parse().expect("a pid");
    assert_ne!(next.cast_unsigned(), first.pid());
    let answers = found(&site, &[]);
    let are = sockets(&site);
    kill_process(Pid::from_raw(next).expect("a pid"), Signal::TERM).expect("kill");
    wait_for("its end", || (!site.path("pid").exists()).then_some(()));
    assert_eq!((answers, are), (Some(next.cast_unsigned()), left));
    wait_for("the socket to be removed", || sockets(&site).is_empty().then_some(()));
    assert!(!first.log().contains("WARN"), "{}", first.log());
}

#[test]
fn the_next_program_of_start_server_gets_the_socket() {
    let site = site();
    let mut command = Command::new("start_server");
    command.args(["--port", "127.0.0.1:0", "--"]).arg(binary()).args(["serve", "app.psgi"]);
    command
        .current_dir(site.root())
        .env("KIRIN_ADMIN_DIRECTORY", site.admin_directory())
        .env_remove("KIRIN_LOG");
    let starter = Kirin::start_command(&mut command);
    let first = found(&site, &[]).expect("the first program");
    starter.signal(Signal::HUP);
    let second = wait_for("the next program", || found(&site, &[]).filter(|pid| *pid != first));
    assert!(starter.get("/x").text().starts_with("application"), "{}", starter.log());
    assert!(!starter.log().contains("WARN"), "{}: {}", second, starter.log());
}

#[test]
fn a_program_that_loads_the_application_itself_is_found_in_its_directory() {
    let site = site();
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../adapters/perl/lib");
    let mut command = Command::new("plackup");
    command.args(["-s", "Kirin", "-E", "deployment", "-o", "127.0.0.1", "-p", "0", "app.psgi"]);
    command.current_dir(site.root()).env("KIRIN_ADMIN_DIRECTORY", site.admin_directory());
    command.env("PERL5LIB", library).env("KIRIN_BINARY", binary()).env("KIRIN_LOG", "info");
    let mut kirin = Kirin::start_command(&mut command);
    assert_eq!(found(&site, &[]), Some(kirin.pid()), "{}", kirin.log());
    let text = said(&run_kirin(&site, &["status"]));
    assert!(text.contains("plackup -s Kirin") && text.contains("\nweb "), "{text}");
    kirin.signal(Signal::TERM);
    kirin.wait();
    assert!(sockets(&site).is_empty(), "{:?}", sockets(&site));
}

#[test]
fn root_and_the_user_that_serves_reach_the_socket() {
    if !geteuid().is_root() {
        return;
    }
    let site = Site::new().with("public/index.html", "index");
    fs::set_permissions(site.root(), Permissions::from_mode(0o755)).expect("a mode");
    let config = format!("user = \"nobody\"\n{CONFIG}");
    let mut kirin = Kirin::start(&site, &config);
    let pid = Some(kirin.pid());
    assert_eq!(found(&site, &[]), pid, "{}", kirin.log());
    let program = site.path("kirin");
    fs::copy(binary(), &program).expect("a copy that nobody can run");
    let status = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]).arg(&program);
        command.env("KIRIN_ADMIN_DIRECTORY", site.admin_directory());
        let output =
            command.args(["status", "--json"]).current_dir(site.root()).output().expect("setpriv");
        let json: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
        json["pid"].as_u64()
    };
    assert_eq!(status(), pid.map(u64::from));
    let directory = site.admin_directory().join("nobody");
    assert_eq!(mode(&directory), 0o700);
    kirin.signal(Signal::TERM);
    kirin.wait();
    let output = run_kirin(&site, &["status"]);
    let text = said(&output);
    assert!(text.contains("no Kirin is running with this configuration"), "{text}");
    let left: Vec<_> = fs::read_dir(directory).expect("the directory").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn the_user_that_serves_upgrades_a_kirin_that_root_has_started() {
    if !geteuid().is_root() {
        return;
    }
    let site = Site::new().with("public/index.html", "index");
    let config = format!("user = \"nobody\"\n{CONFIG}");
    fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
    fs::set_permissions(site.root(), Permissions::from_mode(0o755)).expect("a mode");
    let program = site.path("kirin");
    fs::copy(binary(), &program).expect("a copy that nobody can run");
    let mut command = Command::new(&program);
    command
        .args(["serve"])
        .current_dir(site.root())
        .env("KIRIN_ADMIN_DIRECTORY", site.admin_directory());
    let mut first = Kirin::start_command(&mut command);
    assert_eq!(found(&site, &[]), Some(first.pid()), "{}", first.log());
    first.signal(Signal::USR2);
    assert!(first.wait().success(), "{}", first.log());
    let second = found(&site, &[]).unwrap_or_else(|| panic!("{}", first.log()));
    assert_ne!(second, first.pid());
    kill_process(Pid::from_raw(second.cast_signed()).expect("a pid"), Signal::TERM).expect("kill");
    wait_for("its end", || found(&site, &[]).is_none().then_some(()));
    assert!(!first.log().contains("WARN"), "{}", first.log());
}
