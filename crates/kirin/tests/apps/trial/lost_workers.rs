//! Workers of the new code that are lost before they read a request, or one after the other.

use kirin_tests::wait_for;

use super::{HAND_OVERS, LONG, app, config, serve};

/// New code whose workers end when a request comes, before they read it.
const READS_NOTHING: &str = r#"
use v5.16; use warnings; use POSIX ();
no warnings 'redefine';
# Through the ring.
*Kirin::Ring::begin = sub { POSIX::_exit(0) };
# Over a connection.
*Kirin::Worker::serve = sub {
    my ($worker, $socket) = @_;
    vec(my $wanted = '', fileno $socket, 1) = 1;
    select $wanted, undef, undef, undef;
    POSIX::_exit(0);
};
sub { [200, [], ['two']] };
"#;

#[test]
fn a_request_that_no_worker_of_the_new_code_reads_gets_the_old_code() {
    for keys in HAND_OVERS {
        let tried = serve(&config("50%", LONG, keys));
        tried.reload(READS_NOTHING);
        let mut client = tried.kirin.connect();
        for visitor in 0..1000 {
            // A request that was read could not be repeated.
            client.send(format!(
                "POST / HTTP/1.1\r\nHost: a\r\nCookie: sid={visitor}\r\nContent-Length: 5\r\n\r\nhello"
            ));
            let reply = client.read_reply();
            let log = tried.kirin.log();
            assert_eq!((reply.status, reply.text()), (200, "one".to_owned()), "{visitor}: {log}");
            if log.contains("the new code is given up") {
                break;
            }
        }
        let trial = tried.wait_for_end("given up");
        assert_eq!(trial["reason"], "more visitors get failed responses", "{trial:#}");
        assert!(trial["new"]["lost"].as_u64() > Some(0), "{trial:#}");
        assert_eq!(trial["new"]["requests"], trial["new"]["lost"], "{trial:#}");
        // Status 0 is no crash.
        assert_eq!((&trial["new"]["crashes"], &trial["old"]["failures"]), (&0.into(), &0.into()));
        tried.kirin.wait_for_log("was lost before it read the request");
        assert_eq!(tried.kirin.status()["apps"][0]["counters"]["failed"], 0);
    }
}

#[test]
fn a_crash_loop_counts_the_workers_that_there_are_now() {
    const WORKERS: usize = 6;
    let tried = serve(&config("50%", LONG, ""));
    tried.reload(&app("two", "kill KILL => $$;"));
    let (code, text) = tried.command(&["workers", "web", &WORKERS.to_string()]);
    assert_eq!(code, Some(0), "{text}");
    wait_for("the workers of both", || {
        let workers = tried.kirin.status()["apps"][0]["workers"].as_array().map(Vec::len);
        (workers == Some(2 * WORKERS)).then_some(())
    });
    let mut client = tried.kirin.connect();
    let mut crashes = 0;
    for visitor in 0.. {
        // What has been read is not repeated.
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: a\r\nCookie: sid={visitor}\r\nContent-Length: 0\r\n\r\n"
        ));
        let status = client.read_reply().status;
        assert!(matches!(status, 200 | 502), "{status}: {}", tried.kirin.log());
        crashes += u64::from(status == 502);
        wait_for("the crash", || (tried.count("new", "crashes") == crashes).then_some(()));
        if crashes == WORKERS as u64 {
            break;
        }
        assert_eq!(tried.trial()["state"], "running", "{:#}", tried.trial());
    }
    let reason = tried.wait_for_end("given up")["reason"].clone();
    assert_eq!(reason, "its workers end one after the other and answer nothing");
}
