# frozen_string_literal: true

require "json"
require "sinatra/base"

# A body that is made part by part.
class Lines
  def initialize(count)
    @count = count
  end

  def each
    @count.times { |number| yield "line #{number}\n" }
  end

  def close
    warn "the lines are closed"
  end
end

# Notes in a session, and an action for each thing that Sinatra can do with a response.
class Notes < Sinatra::Base
  PICTURE = File.join(__dir__, "public", "picture.svg")
  # What the environment has of the request, and not of the server or the connection.
  OF_THE_REQUEST = /\A(?:HTTP_(?!VERSION|COOKIE|X_REQUEST_ID)|CONTENT_|PATH_INFO|QUERY_STRING
                       |REQUEST_(?:METHOD|URI)|SCRIPT_NAME|SERVER_(?:NAME|PROTOCOL)|REMOTE_ADDR
                       |rack\.(?:url_scheme|run_once)\z)/x.freeze

  set :environment, :production
  set :show_exceptions, false
  set :raise_errors, false
  set :dump_errors, true
  # Below Puma, Sinatra sends the files in `public`. Kirin has a route for them.
  set :static, true
  set :sessions, key: "notes.session", expire_after: 7 * 24 * 3600, same_site: :lax
  set :session_secret, "0123456789abcdef" * 8

  helpers do
    def notes
      session[:notes] ||= []
    end
  end

  get("/") { erb :index }

  post "/note" do
    halt 422, { "Content-Type" => "application/json" }, { error: "no text" }.to_json if
      params.fetch("text", "").strip.empty?
    notes << params["text"]
    redirect to("/"), 303
  end

  get "/logout" do
    session.clear
    redirect back
  end

  get "/cookies" do
    before = request.cookies.reject { |name, _| name == "notes.session" }
    response.set_cookie "kase", value: "ä; b=c", path: "/", httponly: true
    response.set_cookie "old", value: "", max_age: 0
    response.set_cookie "plain", "oak"
    "before: #{before.sort}"
  end

  %i[get post put patch delete options link unlink].each do |method|
    send(method, "/env*") do
      content_type :json
      seen = env.select { |name, value| name.match?(OF_THE_REQUEST) && value.is_a?(String) }
      # Kirin says 0 if there is no body, and Puma nothing.
      seen.delete("CONTENT_LENGTH") if seen["CONTENT_LENGTH"] == "0"
      seen.transform_values! { |value| value.b.inspect }
      JSON.pretty_generate(
        env: seen.sort.to_h, params: params.inspect, splat: params["splat"].inspect,
        url: request.url, path: request.path, ip: request.ip, script: url("/x"),
        media: request.media_type.inspect, length: request.content_length.to_i,
        body: [request.body.rewind, request.body.read.bytesize].last
      )
    end
  end

  get("/named/:first/?:second?") { params.sort.inspect }
  get(%r{/year/(\d{4})}) { |year| "the year #{year}" }
  get("/pass/*") { params["splat"].first == "on" ? pass : "stays" }
  get("/pass/on") { "passed" }

  post "/upload" do
    params.sort.map do |name, value|
      next "#{name}=#{value}\n" if value.is_a?(String)

      bytes = value[:tempfile].read
      "#{name}: #{value[:filename].inspect} #{value[:type]} #{bytes.bytesize} #{bytes.sum(32)}\n"
    end
  end

  post("/raw") { "#{request.body.read.sum(32)} #{request.body.read.inspect}\n" }
  post "/json" do
    content_type :json
    JSON.parse(request.body.read).to_json
  end

  get("/file") { send_file PICTURE }
  get("/file/attachment") { send_file PICTURE, disposition: "attachment", filename: "ä b\".svg" }
  get("/file/status") { send_file PICTURE, status: 203, type: "text/plain", last_modified: 0 }
  get("/file/none") { send_file "/nothing/there" }
  get("/file/opened") { [200, { "Content-Type" => "image/svg+xml" }, File.open(PICTURE)] }
  get("/file/large") { send_file ENV.fetch("NOTES_LARGE_FILE") }

  get "/stream" do
    content_type :text
    stream { |out| 200.times { |number| out << "#{params['word']} #{number}\n" * 50 } }
  end
  get("/stream/empty") { stream { |_out| nil } }
  get("/stream/lines") { [200, { "Content-Type" => "text/plain" }, Lines.new(1000)] }
  get("/stream/length") { [200, { "Content-Length" => "8890" }, Lines.new(1000)] }
  get "/stream/events" do
    content_type "text/event-stream"
    stream(:keep_open) do |out|
      3.times { |number| out << "data: #{number}\n\n" }
      out.callback { warn "the events are closed" }
      out.close
    end
  end
  get "/stream/hijacked" do
    headers "rack.hijack" => lambda { |socket|
      socket.write("written by hand")
      socket.close
    }
    headers "Content-Length" => "15"
    status 200
  end

  get "/conditional" do
    last_modified Time.at(1_700_000_000)
    etag "seven", new_resource: false
    cache_control :public, :must_revalidate, max_age: 60
    "the seventh\n"
  end
  get("/expires") { expires(3600, :public, :no_cache).then { "soon\n" } }
  get("/status/:code") { status(params["code"].to_i).then { "status #{params['code']}\n" } }
  get("/nobody") { 204 }
  get("/triple") { [201, { "X-Triple" => "yes" }, %w[three\n parts\n]] }
  get("/fields") { headers("X-Many" => "a\nb", "X-Empty" => "").then { "x" } }
  get("/vary") { request.preferred_type(%w[text/html application/json]).to_s }
  get("/long") { "0123456789abcdef" * 100_000 }
  get("/broken") { raise "no such luck" }
  get "/broken/stream" do
    stream do |out|
      out << "begin" * 10_000
      raise "cut in the middle"
    end
  end
  get("/after") do
    env["rack.after_reply"] << -> { warn "after the reply" }
    "before\n"
  end

  error { "error page: #{env['sinatra.error'].class}\n" }
  not_found { "not found: #{request.path}\n" }
end
