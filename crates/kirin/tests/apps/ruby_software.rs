//! Frameworks for Ruby as they are installed.

use kirin_tests::{Kirin, Site};

const SINATRA: &str = "\
require 'sinatra/base'
class Shop < Sinatra::Base
  get('/') { erb :index, locals: { name: params['name'] } }
  post('/') { \"#{params['a']} #{request.ip} #{request.url}\" }
  get('/n/:name') { params['name'] }
  get('/go') { redirect to('/there') }
  get('/stop') { halt 418, 'short' }
  get('/stream') { stream { |out| 3.times { |at| out << \"part #{at}\\n\" } } }
  get('/file') { send_file 'public/small.txt' }
  error(RuntimeError) { 'an error of its own' }
  get('/error') { raise 'broken' }
end
";

const RAILS: &str = "\
require 'logger'
require 'rails'
require 'action_controller/railtie'
class Shop < Rails::Application
  config.eager_load = true
  config.secret_key_base = 'x' * 64
  config.logger = Logger.new($stderr, level: :error)
  routes.append do
    root 'pages#index'
    get '/n/:name', to: 'pages#name'
    get '/broken', to: 'pages#broken'
    get '/file', to: 'pages#file'
    post '/length', to: 'pages#length'
  end
end
class PagesController < ActionController::Base
  def index = render(plain: \"#{Rails.env} #{session[:visits] = session[:visits].to_i + 1}\")
  def name = render(plain: params[:name])
  def broken = raise('no such table')
  def file = send_file(Rails.root.join('public/small.txt'))
  def length = render(plain: \"#{params[:file].read.bytesize} #{request.remote_ip}\")
end
";

fn serve(site: &Site, found: &str) -> Kirin {
    let kirin = Kirin::start_with(site, &["serve", "--listen", "0", "--workers", "2", "."]);
    assert!(kirin.whole_log().contains(found), "{}", kirin.whole_log());
    kirin
}

#[test]
fn the_directory_of_a_sinatra_project_is_served() {
    let site = Site::new()
        .with("config.ru", "require_relative 'app'\nrun Shop # Sinatra\n")
        .with("app.rb", SINATRA)
        .with("views/index.erb", "<p>Hello <%= Rack::Utils.escape_html(name) %></p>")
        .with("public/small.txt", "0123456789");
    let found = "found a Ruby application (Sinatra): config.ru starts a Rack application";
    let kirin = serve(&site, found);
    let mut client = kirin.connect();
    assert_eq!(client.get("/?name=%3CA%3E").text(), "<p>Hello &lt;A&gt;</p>");
    // It decodes the path once.
    assert_eq!(client.get("/n/b%2541%C3%A9").text(), "b%41é");
    let reply = client.post("/", "application/x-www-form-urlencoded", b"a=b+c");
    assert_eq!(reply.text(), "b c 127.0.0.1 http://test/");
    let reply = client.get("/go");
    assert_eq!((reply.status, reply.field("location")), (302, Some("http://test/there")));
    let reply = client.get("/stop");
    assert_eq!((reply.status, reply.text().as_str()), (418, "short"));
    assert_eq!(client.get("/stream").text(), "part 0\npart 1\npart 2\n");
    // Kirin serves the file. The application sends a part of it.
    assert_eq!(client.get("/small.txt").text(), "0123456789");
    let reply = client.request("GET", "/file", "Range: bytes=2-4\r\n");
    assert_eq!((reply.status, reply.text().as_str()), (206, "234"));
    let reply = client.get("/error");
    assert_eq!((reply.status, reply.text().as_str()), (500, "an error of its own"));
    // The source is not public.
    assert_eq!(client.get("/app.rb").status, 404);
}

#[test]
fn the_directory_of_a_rails_project_is_served() {
    let site = Site::new()
        .with("config.ru", "require_relative 'config/application'\nShop.initialize!\nrun Shop\n")
        .with("config/application.rb", RAILS)
        .with("public/small.txt", "0123456789")
        .with("public/500.html", "the page of Rails for errors");
    let kirin =
        serve(&site, "found a Ruby application (Rails): config.ru starts a Rails application");
    let mut client = kirin.connect();
    let reply = client.get("/");
    assert_eq!(reply.text(), "production 1", "{}", kirin.whole_log());
    let cookie = reply.field("set-cookie").and_then(|field| field.split(';').next());
    let fields = format!("Cookie: {}\r\n", cookie.expect("a cookie"));
    assert_eq!(client.request("GET", "/", &fields).text(), "production 2");
    assert_eq!(client.get("/n/a%2Fb%2541%C3%A9").text(), "a/b%41é");
    assert_eq!(client.get("/small.txt").text(), "0123456789");
    let reply = client.get("/file");
    assert_eq!((reply.status, reply.text().as_str()), (200, "0123456789"));
    let form = [
        b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n".to_vec(),
        vec![b'x'; 2_000_000],
        b"\r\n--b--\r\n".to_vec(),
    ]
    .concat();
    let reply = client.post("/length", "multipart/form-data; boundary=b", &form);
    assert_eq!(reply.text(), "2000000 127.0.0.1");
    let reply = client.get("/broken");
    assert_eq!((reply.status, reply.text().as_str()), (500, "the page of Rails for errors"));
    kirin.wait_for_log("no such table");
    assert_eq!(client.get("/config/application.rb").status, 404);
}
