//! Kirin under systemd itself, with the unit of the package. systemd runs as process 1 of
//! namespaces of its own, in which the file system is read-only, and starts nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use kirin_tests::{Client, LeasedPort, Site, repository, wait_for};
use rustix::process::geteuid;

use crate::user::{program_for_everybody, site};

/// Where the site is in the namespace: the unit hides `/tmp`.
const PLACE: &str = "/run/site";

/// Prepares the namespaces and becomes systemd. The argument is the directory of the site.
const BOOT: &str = r"
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/site
mount --bind $1 /run/site
cp /run/site/units/* /run/systemd/system/
mount -o remount,bind,ro /
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /var/tmp
exec env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin container=kirin-test \
    /lib/systemd/systemd --system --unit=only.target --log-target=console --show-status=no
";

/// A running systemd. It is killed when this is dropped, and all that it has started.
struct Systemd {
    unshare: Child,
    /// Its process id here.
    pid: String,
}

impl Systemd {
    fn boot(site: &Site) -> Self {
        let log = fs::File::create(site.path("systemd.log")).expect("a log");
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child=KILL", "--mount", "--mount-proc"]);
        command.args(["--cgroup", "--ipc", "sh", "-c", BOOT, "boot"]).arg(site.root());
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
        let unshare = command.spawn().expect("unshare is part of util-linux");
        let children = format!("/proc/{0}/task/{0}/children", unshare.id());
        let pid = wait_for("systemd", || {
            let pid = fs::read_to_string(&children).ok()?.trim().to_owned();
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            (name.trim() == "systemd").then_some(pid)
        });
        let systemd = Self { unshare, pid };
        wait_for("its answers", || {
            systemd.run(&["is-system-running"]).status.success().then_some(())
        });
        systemd
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.pid, "-m", "-p", "-r", "systemctl"]).args(words);
        command.output().expect("nsenter is part of util-linux")
    }

    fn property(&self, name: &str) -> String {
        let output = self.run(&["show", "--value", "-p", name, "kirin.service"]);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
    }
}

/// Writes a unit of the package, changed for the site.
fn write_unit(site: &Site, name: &str, changes: &[(&str, &str)]) {
    let mut unit = fs::read_to_string(repository().join("packaging").join(name)).expect("a unit");
    for (from, to) in changes {
        assert!(unit.contains(from), "{name}: {from}");
        unit = unit.replace(from, to);
    }
    fs::create_dir_all(site.path("units")).expect("a directory");
    fs::write(site.path("units").join(name), unit).expect("a unit");
}

#[test]
fn reloads_and_upgrades_under_systemd() {
    let mut namespaces = Command::new("unshare");
    namespaces.args(["--pid", "--fork", "--mount", "--mount-proc", "--cgroup", "--ipc", "true"]);
    let mut has_namespaces = || namespaces.status().is_ok_and(|status| status.success());
    if !geteuid().is_root() || !has_namespaces() {
        println!("not tested: only root has namespaces");
        return;
    }
    let ports = [LeasedPort::lease(), LeasedPort::lease()];
    let [http, memcached] = [0, 1].map(|number: usize| ports[number].address());
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"{http}\"\n[store]\nmemcached = [\"{memcached}\"]\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n\
         [[route]]\npath = \"/\"\ntry = [\"store\", \"app:web\"]\n"
    );
    let site = site().with("kirin.toml", config);
    program_for_everybody(&site);
    let own = "DefaultDependencies=no\n";
    fs::create_dir_all(site.path("units")).expect("a directory");
    fs::write(site.path("units/only.target"), format!("[Unit]\n{own}")).expect("a unit");
    write_unit(
        &site,
        "kirin.service",
        &[
            ("[Unit]\n", &format!("[Unit]\n{own}")),
            (
                "[Service]\n",
                "[Service]\nStandardError=append:/run/site/kirin.log\nEnvironment=PERL5LIB=/run/site/lib\n",
            ),
            ("/usr/local/bin/kirin", "/run/site/kirin"),
            ("/etc/kirin", PLACE),
            ("User=kirin", "User=nobody"),
            ("Group=kirin", "Group=nogroup"),
            ("StateDirectory=kirin\n", ""),
            ("LogsDirectory=kirin\n", ""),
            ("RuntimeDirectory=kirin/kirin", "RuntimeDirectory=kirin/nobody"),
            ("WorkingDirectory=/var/lib/kirin", "WorkingDirectory=/run/site"),
        ],
    );
    write_unit(
        &site,
        "kirin.socket",
        &[
            ("[Unit]\n", &format!("[Unit]\n{own}")),
            ("ListenStream=80", &format!("ListenStream={http}")),
        ],
    );
    let systemd = Systemd::boot(&site);
    let log = || fs::read_to_string(site.path("kirin.log")).unwrap_or_default();
    let run = |words: &[&str]| {
        let output = systemd.run(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let status = systemd.property("ExecMainStatus");
        assert!(output.status.success(), "{words:?}: {said}(status {status})\n{}", log());
    };
    run(&["start", "kirin.service"]);
    let first = systemd.property("MainPID");
    let mut client = Client::connect(http);
    assert_eq!(client.get("/push").status, 200, "{}", log());
    assert_eq!(client.get("/page").text(), "pushed");

    // The same program: a reload.
    run(&["reload", "kirin.service"]);
    assert_eq!(systemd.property("MainPID"), first);
    assert!(log().contains("reloaded"), "{}", log());

    // A package has replaced it.
    let replace = |put: &dyn Fn(&Path)| {
        let new = site.path("kirin.new");
        put(&new);
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).expect("a mode");
        fs::rename(&new, site.path("kirin")).expect("a rename");
    };
    replace(&|new| _ = fs::copy(kirin_tests::binary(), new).expect("a copy"));
    run(&["reload", "kirin.service"]);
    let second = wait_for("the main process", || {
        Some(systemd.property("MainPID")).filter(|pid| *pid != first && pid != "0")
    });
    assert_eq!(client.get("/page").text(), "pushed");
    wait_for("the end of the first", || {
        log().contains("the program before this one has ended").then_some(())
    });
    assert_eq!(systemd.property("ActiveState"), "active", "{}", log());

    // One that does not start changes nothing, and systemctl says so.
    fs::rename(site.path("kirin"), site.path("kirin.good")).expect("a rename");
    let fails = "#!/bin/sh\n[ $1 = serve ] && exit 3\nexec /run/site/kirin.good \"$@\"\n";
    replace(&|new| fs::write(new, fails).expect("a program"));
    assert!(!systemd.run(&["reload", "kirin.service"]).status.success());
    assert_eq!(
        (systemd.property("MainPID"), systemd.property("ActiveState")),
        (second, "active".to_owned()),
        "{}",
        log()
    );
    assert!(log().contains("ended before it served (exit status: 3)"), "{}", log());
    assert_eq!(client.get("/page").text(), "pushed");

    // It gets TERM, and the time to end.
    run(&["stop", "kirin.service"]);
    for (name, value) in [("Result", "success"), ("NRestarts", "0"), ("ActiveState", "inactive")] {
        assert_eq!(systemd.property(name), value, "{name}:\n{}", log());
    }
}
