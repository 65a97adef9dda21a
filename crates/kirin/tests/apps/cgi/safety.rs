//! What a program must never get: a shell, and what Kirin has open.

use std::fs;
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use kirin_tests::{Kirin, SetAtEnd, binary, run_kirin, wait_for};

use super::{config, variable, with_program, without_admin};

#[test]
fn no_shell_ever_reads_a_request() {
    let arguments = "#!/usr/bin/perl\nprint \"Content-Type: text/plain\\n\\n\", scalar @ARGV, \" $0\\n\";\n\
                     print \"$_=$ENV{$_}\\n\" for sort keys %ENV;\n";
    let name = "a b;touch evil $(touch evil) `touch evil`";
    let site = with_program(super::site(), &format!("cgi-bin/{name}"), arguments);
    let rest = "[[route]]\npath = \"/cgi-bin\"\ntry = [\"cgi:cgi-bin\"]\n";
    let kirin = Kirin::start(&site, &config(rest));
    let mut client = kirin.connect();
    let path = "/cgi-bin/a%20b%3Btouch%20evil%20$(touch%20evil)%20%60touch%20evil%60";
    // A query without `=` would be the words of the command line (RFC 3875 section 4.4).
    for query in ["-s+--help", "$(touch%20evil)", ";touch%20evil", "`touch%20evil`"] {
        let target = format!("{path}/;touch%20evil?{query}");
        let fields = "X-A: () { :; }; touch evil\r\nUser-Agent: `touch evil`\r\n";
        let reply = client.request("GET", &target, fields);
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
        let file = site.path("cgi-bin").join(name).display().to_string();
        assert!(reply.text().starts_with(&format!("0 {file}\n")), "{}", reply.text());
        assert_eq!(variable(&reply, "QUERY_STRING").as_deref(), Some(query));
        assert_eq!(variable(&reply, "HTTP_X_A").as_deref(), Some("() { :; }; touch evil"));
    }
    for directory in ["", "cgi-bin"] {
        assert!(!site.path(directory).join("evil").exists());
    }
}

#[test]
fn a_program_inherits_its_three_streams_only() {
    let site = super::site().with("public/a.txt", "a");
    let rest = "[[route]]\npath = \"/public\"\nrewrite = \"/\"\ntry = [\"files:public\"]\n";
    fs::write(site.path("kirin.toml"), config(rest)).expect("kirin.toml");
    // The shell leaves descriptors to Kirin that it does not know.
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" serve --config kirin.toml 7</dev/null 9</dev/null"]);
    command.arg(binary()).current_dir(site.root()).env_remove("KIRIN_LOG");
    command.env("KIRIN_ADMIN_DIRECTORY", site.admin_directory());
    let kirin = Kirin::start_command(&mut command);
    let mut client = kirin.connect();
    assert_eq!(client.get("/public/a.txt").text(), "a");
    for body in [0, 10, 3_000_000] {
        let reply = client.post("/do?do=fds", "a/b", &vec![b'x'; body]);
        assert_eq!(reply.text(), "0 1 2", "{body}");
    }
}

#[test]
fn a_program_inherits_nothing_during_an_upgrade() {
    let site = super::site();
    let kirin = Kirin::start(&site, &without_admin(&config("")));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let reply = kirin.connect().get("/do?do=fds");
                    assert_eq!(reply.text(), "0 1 2");
                }
            });
        }
        let _end = SetAtEnd(&is_over);
        // Each upgrade starts a process with descriptors that are not close-on-exec. It fails,
        // because the new program cannot have this port.
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = taken.local_addr().expect("an address");
        let other = format!("[[listener]]\naddress = \"{address}\"\n");
        let config = without_admin(&config(&other));
        fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
        for number in 1..=5 {
            let output = run_kirin(&site, &["upgrade"]);
            assert!(!output.status.success(), "{output:?}");
            wait_for("a failed upgrade", || {
                (kirin.log().matches("upgrade failed").count() == number).then_some(())
            });
        }
    });
}
