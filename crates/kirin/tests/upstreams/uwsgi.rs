//! `proxy:NAME` in front of uWSGI itself (Debian's), by its own protocol and by SCGI.

use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use kirin_tests::{Kirin, Site, wait_for};

const APP: &str = "sub {
    my $env = shift;
    $env->{'psgi.input'}->read(my $body, $env->{CONTENT_LENGTH}) if $env->{CONTENT_LENGTH};
    my @names = qw(REQUEST_METHOD SCRIPT_NAME PATH_INFO QUERY_STRING CONTENT_LENGTH HTTP_X_Y);
    my @lines = map { \"$_=\" . ($env->{$_} // '') . \"\\n\" } @names;
    return [201, ['Content-Type' => 'text/plain', 'X-A' => 'b'], [@lines, $body // '']];
}";

/// A uWSGI with one process. It ends when it is dropped.
struct Uwsgi(Child);

impl Uwsgi {
    /// Starts it on the unix sockets `uwsgi.sock` and `scgi.sock` of the site.
    fn start(site: &Site) -> Self {
        std::fs::write(site.path("app.psgi"), APP).expect("app.psgi");
        let mut child = Command::new("uwsgi")
            .args(["--plugin", "psgi", "--psgi", "app.psgi", "--die-on-term"])
            .args(["--socket", "uwsgi.sock", "--scgi-socket", "scgi.sock"])
            .current_dir(site.root())
            .stdin(Stdio::null())
            // A process that outlives the test must not hold its output.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("packages uwsgi-core and uwsgi-plugin-psgi");
        wait_for("uWSGI to serve", || {
            assert!(child.try_wait().expect("wait").is_none(), "uWSGI has ended");
            let listens = |name| UnixStream::connect(site.path(name)).is_ok();
            (listens("uwsgi.sock") && listens("scgi.sock")).then_some(())
        });
        Self(child)
    }
}

impl Drop for Uwsgi {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn uwsgi_answers_by_its_own_protocol_and_by_scgi() {
    let site = Site::new();
    let _uwsgi = Uwsgi::start(&site);
    let upstream = |name: &str, scheme: &str| {
        let socket = site.path(&format!("{name}.sock"));
        format!(
            "[[upstream]]\nname = \"{name}\"\nservers = [\"{scheme}://unix:{}\"]\n",
            socket.display()
        )
    };
    let config = format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n{}{}\
         [[route]]\npath = \"/\"\ntry = [\"proxy:uwsgi\"]\n[[route]]\npath = \"/s\"\ntry = [\"proxy:scgi\"]\n",
        upstream("uwsgi", "uwsgi"),
        upstream("scgi", "scgi")
    );
    let kirin = Kirin::start(&site, &config);
    let mut client = kirin.connect();
    for path in ["/a%20b", "/s/a%20b"] {
        let reply = client.request("GET", &format!("{path}?c=d"), "X-Y: z\r\n");
        assert_eq!((reply.status, reply.field("x-a")), (201, Some("b")), "{}", kirin.log());
        let path_info = path.replace("%20", " ");
        let expected = format!(
            "REQUEST_METHOD=GET\nSCRIPT_NAME=\nPATH_INFO={path_info}\nQUERY_STRING=c=d\nCONTENT_LENGTH=0\nHTTP_X_Y=z\n"
        );
        assert_eq!(reply.text(), expected);
        let body = "x".repeat(100_000);
        let reply = client.post(path, "text/plain", body.as_bytes());
        assert!(
            reply.text().ends_with(&format!("CONTENT_LENGTH=100000\nHTTP_X_Y=\n{body}")),
            "{path}"
        );
    }
}
