//! Work that unknown clients can cause in a script: no body and no number of requests makes other
//! clients wait.

use kirin_tests::scripts::serve;
use kirin_tests::{Client, Kirin, Site};

const SCRIPT: &str = "
local work = {
  ['/form'] = function(request) request:form() end,
  ['/json'] = function(request) request:json() end,
  ['/decode'] = function(request) kirin.json.decode(request:body()) end,
  ['/caught'] = function(request) pcall(request.json, request) end,
}
return function(request)
  local repeated = work[request.path]
  if repeated then while true do repeated(request) end end
  if request.path == '/busy' then while true do end end
  return 'alive'
end";

fn site(time_limit: &str) -> (Site, Kirin) {
    let site = Site::new().with("page.lua", SCRIPT).with("public/files/small.txt", "small");
    let routes = format!(
        "[lua]\ntime_limit = \"{time_limit}\"\n[[route]]\npath = \"/\"\ntry = [\"lua:page.lua\"]\n\
         [[route]]\npath = \"/files\"\ntry = [\"files:public\"]\n"
    );
    let kirin = serve(&site, &routes);
    (site, kirin)
}

#[test]
fn no_body_takes_a_script_over_its_time() {
    let (_site, kirin) = site("100ms");
    let pairs = "a=1&".repeat(250_000);
    let escapes = format!("a={}", "%41".repeat(300_000));
    let arrays = format!("[{}0]", "[],".repeat(300_000));
    let objects = format!("[{}0]", "{\"a\":{}},".repeat(100_000));
    let text = format!("\"{}\"", "\\u00e9".repeat(160_000));
    for (path, body) in [
        ("/form", &pairs),
        ("/form", &escapes),
        ("/json", &arrays),
        ("/json", &objects),
        ("/json", &text),
        ("/decode", &arrays),
        ("/caught", &arrays),
    ] {
        let reply = kirin.connect().post(path, "text/plain", body.as_bytes());
        let start: String = body.chars().take(12).collect();
        assert_eq!(reply.status, 504, "{path} {start}");
        assert_eq!(kirin.get("/").text(), "alive", "after {path} {start}");
    }
    kirin.wait_for_log("page.lua:3: the time limit is reached");
}

#[test]
fn many_long_scripts_let_others_be_served() {
    // This is sixteen seconds of work. The file must not wait for its end.
    let (site, kirin) = site("1s");
    let mut busy: Vec<Client> = (0..16).map(|_| kirin.connect()).collect();
    for client in &mut busy {
        client.send("GET /busy HTTP/1.1\r\nHost: t\r\n\r\n");
    }
    let mut client = kirin.connect();
    for _ in 0..2 {
        let reply = client.get("/files/small.txt");
        assert_eq!((reply.status, reply.text().as_str()), (200, "small"));
    }
    let log = std::fs::read_to_string(site.path("access.log")).unwrap_or_default();
    let ended = log.lines().filter(|line| line.contains("/busy")).count();
    assert!(ended < 16, "all scripts ran before the files were served: {log}");
    assert_eq!(busy[0].read_reply().status, 504);
}
