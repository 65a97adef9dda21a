//! The smallest front: one event loop, one application. For looking at the hot path alone (strace,
//! perf, wrk).
//!
//!     cargo run --release -p kirin-workers --example serve_app -- app.psgi [workers] [host:port]

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kirin_files::AppFiles;
use kirin_http::{Answer, Handler, ListenAddress, Origin, RequestHead};
use kirin_server::{InForce, Limits, Listener, Observers, Server, listener};
use kirin_workers::{App, AppCode, AppConfig};

struct OneApp(Arc<App>, Rc<AppFiles>);

impl Handler for OneApp {
    fn answer(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> Answer {
        let meta = kirin_workers::MetaVariables::default();
        self.0.answer(request, origin, &self.1, &meta, None)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let load = arguments.next().ok_or("which application?")?;
    let code = AppCode::parse(&load, Path::new(""), Path::new(""));
    let mut config = AppConfig::new("app", code);
    config.workers = arguments.next().map_or(Ok(1), |count| count.parse())?;
    let address: ListenAddress = arguments.next().as_deref().unwrap_or("127.0.0.1:0").parse()?;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let app = App::start(config, Vec::new())?;
        app.ready().await?;
        for listener in Listener::bind(&address, 1)? {
            let local = listener.address()?;
            println!("{local}");
            let server = Server::new(
                Rc::new(OneApp(Arc::clone(&app), Rc::default())),
                local,
                Limits::default(),
                Observers::default(),
            );
            tokio::task::spawn_local(listener::accept(listener, InForce::new(server)));
        }
        tokio::signal::ctrl_c().await?;
        app.stop(Duration::from_secs(5)).await;
        Ok(())
    })
}
