# frozen_string_literal: true

# Debian's Redmine (packages redmine and redmine-sqlite), compared with Puma. `make test-long` runs
# it: the migrations alone take 10 seconds.

require "open3"
require "rbconfig"
require_relative "comparison"
require_relative "form_fields"

class RedmineTest < Comparison
  INSTALLED = "/usr/share/redmine"
  INSTANCE = "instances/default"
  LARGE = (0..255).to_a.pack("C*") * 12_000
  PASSWORD = "oak-oak-oak"
  BASIC = { "Authorization" => "Basic #{["admin:#{PASSWORD}"].pack('m0')}" }.freeze

  # Tokens, keys, and times in several forms.
  RANDOM = [
    /(?:csrf-token" content|authenticity_token" value)="[^"]+"/,
    %r{\d\d/\d\d/\d{4} \d\d:\d\d [AP]M}, /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?Z?/,
    /less than a minute|\d+ minutes?/, /\d+\.\h{64}/, /\h{40}/, /\(D:\d{14}/, / name="[\w-]+-\h{8}"/
  ].freeze

  serve "redmine"

  class << self
    # Completes the copy of this directory with Redmine and an instance with a database of its own.
    def prepare(directory)
      raise "Redmine is not installed: apt-get install redmine redmine-sqlite" unless
        File.exist?("#{INSTALLED}/config.ru")

      copy(directory)
      write_instance(directory)
      run_program(directory, "rake", "db:migrate")
      run_program(directory, "ruby", "fill.rb")
    end

    # Redmine's menu has another entry in the first pages of a process, so both are one process.
    def workers
      1
    end

    private

    # The package has links to the instances of this machine, which are not copied.
    def copy(directory)
      Dir["#{INSTALLED}/*"].each do |path|
        FileUtils.cp_r(path, directory, preserve: true) unless
          %w[instances Gemfile.lock].include?(File.basename(path))
      end
      gemfile = File.read("#{INSTALLED}/Gemfile")
      # It looks for the adapters of databases in the instances of the machine.
      File.write("#{directory}/Gemfile", gemfile.gsub("#{INSTALLED}/", "#{directory}/"))
    end

    def write_instance(directory)
      instance = File.join(directory, INSTANCE)
      directories = %w[config files tmp log public/plugin_assets]
      FileUtils.mkdir_p(directories.map { |name| File.join(instance, name) })
      File.write("#{instance}/config/secret_key.txt", "0123456789abcdef" * 8)
      File.write("#{instance}/config/database.yml", <<~YAML)
        production:
          adapter: sqlite3
          database: #{INSTANCE}/redmine.sqlite3
          timeout: 5000
      YAML
      FileUtils.rm_f("#{directory}/config/database.yml")
    end

    def run_program(directory, *command)
      text, status = Open3.capture2e({ "RAILS_ENV" => "production" }, "bundle", "exec", *command,
                                     chdir: directory)
      raise "#{command.join(' ')} has failed:\n#{text}" unless status.success?
    end
  end

  # Sends the form of the last page.
  def submit(what, action, status, changes, make: :form, **expected)
    step(what, "POST", action, status, **expected,
         content: ->(visitor) { send(make, FormFields.of(visitor.last, action, changes)) })
  end

  def sign_in
    step("the form", "GET", "/login", 200, body: /name="password"/)
    submit("signing in", "/login", 302, { "username" => "admin", "password" => PASSWORD })
  end

  # Makes a project with all modules.
  def make_project(name)
    step("a new project", "GET", "/projects/new", 200)
    submit("a project", "/projects", 302,
           { "project[name]" => "The #{name}", "project[identifier]" => name })
  end

  def test_signing_in_and_out
    step("the start", "GET", "/", 200, body: /<title>Redmine/)
    back = "http%3A%2F%2Fsite.example%2Fmy%2Fpage"
    step("a page of members", "GET", "/my/page", 302,
         field: ["Location", "http://site.example/login?back_url=#{back}"])
    step("the form", "GET", "/login", 200)
    submit("a wrong password", "/login", 200, { "username" => "admin", "password" => "elm" },
           body: /Invalid user or password/)
    step("no token", "POST", "/login", 422, content: form("username" => "admin"))
    sign_in
    step("my page", "GET", "/my/page", 200, body: /Logged in as.*admin/m)
    step("the account", "GET", "/my/account", 200)
    submit("its change", "/my/account", 302, { "user[firstname]" => "Änne" })
    step("its message", "GET", "/my/account", 200, body: /Account was successfully updated.*Änne/m)
    step("the administration", "GET", "/admin", 200, body: /Projects/)
    step("its information", "GET", "/admin/info", 200, body: /5\.0\.4/)
    step("the settings", "GET", "/settings", 200)
    step("the way out", "GET", "/logout", 200)
    submit("out", "/logout", 302, {})
    step("a page of members", "GET", "/my/page", 302)
    assert_connections_kept
  end

  def test_a_project_with_issues
    sign_in
    make_project("oaks")
    step("its settings", "GET", "/projects/oaks/settings", 200, body: /Successful creation/)
    step("a new issue", "GET", "/projects/oaks/issues/new", 200)
    submit("no subject", "/projects/oaks/issues", 200, { "issue[subject]" => "" },
           make: :multipart, body: /Subject cannot be blank/)
    issue = submit("an issue", "/projects/oaks/issues", 302,
                   { "issue[subject]" => "Üble <Eichen>",
                     "issue[description]" => "h1. Oak\n\n* one" },
                   make: :multipart)
    path = issue.field("Location").delete_prefix("http://site.example")
    step("it", "GET", path, 200, body: %r{Üble &lt;Eichen&gt;.*<h1[^>]*>Oak.*<li>one</li>}m)
    step("the form to change it", "GET", "#{path}/edit", 200)
    submit("a change", path, 302, { "issue[notes]" => "A *note*", "issue[status_id]" => "2" },
           make: :multipart)
    step("its history", "GET", path, 200, body: %r{<strong>note</strong>}m)
    step("the list", "GET", "/projects/oaks/issues", 200, body: /Üble &lt;Eichen&gt;/)
    step("a filter", "GET", "/projects/oaks/issues?set_filter=1&status_id=c", 200, body: /No data/)
    step("as CSV", "GET", "/projects/oaks/issues.csv?encoding=UTF-8", 200, body: /Üble <Eichen>/)
    step("as a feed", "GET", "/projects/oaks/issues.atom", 200, body: /<feed/)
    step("its PDF", "GET", "#{path}.pdf", 200, body: /\A%PDF/,
         field: %w[Content-Type application/pdf])
    step("the activity", "GET", "/projects/oaks/activity", 200, body: /Eichen/)
    step("the Gantt chart", "GET", "/projects/oaks/issues/gantt", 200)
    step("the calendar", "GET", "/projects/oaks/issues/calendar", 200)
    step("the search", "GET", "/search?q=Eichen", 200,
         body: %r{<span class="highlight.*Eichen</span>})
    step("for a script", "GET", "/issues/auto_complete?term=Eich&project_id=oaks", 200,
         body: /Eichen/)
    step("the page again", "GET", path, 200)
    step("it goes", "POST", path, 302, content: lambda { |visitor|
      token = visitor.last.find(/csrf-token" content="([^"]+)/)
      form("_method" => "delete", "authenticity_token" => token)
    })
    step("it has gone", "GET", path, 404, body: /<title>404/)
    # Redmine ends the session then.
    step("a script without a token", "POST", "/projects/oaks/issues/new.js", 422,
         fields: { "X-Requested-With" => "XMLHttpRequest" })
    step("no session", "GET", "/my/page", 302)
    assert_connections_kept
  end

  def test_a_wiki_news_and_a_forum
    sign_in
    make_project("elms")
    step("the wiki", "GET", "/projects/elms/wiki/Wiki/edit", 200)
    wiki = lambda do |text|
      step("the form", "GET", "/projects/elms/wiki/Wiki/edit", 200)
      step("a page", "POST", "/projects/elms/wiki/Wiki", 302, content: lambda { |visitor|
        multipart(FormFields.of(visitor.last, "/projects/elms/wiki/Wiki",
                                { "content[text]" => text }))
      })
    end
    code = '<pre><code class="ruby">def x; end</code></pre>'
    wiki.call("h1. Elms\n\nA [[Link]] and |a|table|\n\n#{code}")
    wiki.call("h1. Elms\n\nAnother text with ümläute")
    step("it", "GET", "/projects/elms/wiki", 200, body: /ümläute/)
    step("its history", "GET", "/projects/elms/wiki/Wiki/history", 200)
    step("the difference", "GET", "/projects/elms/wiki/Wiki/diff?version=2&version_from=1", 200,
         body: /ümläute/)
    step("the first version", "GET", "/projects/elms/wiki/Wiki/1", 200, body: /<h1/)
    step("as text", "GET", "/projects/elms/wiki/Wiki.txt", 200, body: /\Ah1\. Elms/)
    step("as HTML", "GET", "/projects/elms/wiki/Wiki.html", 200, body: /<h1/)
    step("a page that is not there", "GET", "/projects/elms/wiki/None", 200)
    step("news", "GET", "/projects/elms/news/new", 200)
    submit("some", "/projects/elms/news", 302,
           { "news[title]" => "Elms", "news[description]" => "are trees" }, make: :multipart)
    step("all", "GET", "/projects/elms/news", 200, body: /Elms/)
    step("the start", "GET", "/", 200, body: /are trees|Latest news/)
    assert_connections_kept
  end

  def test_files_of_issues
    sign_in
    make_project("ashes")
    step("a new issue", "GET", "/projects/ashes/issues/new", 200)
    tokens = visitors.map do |visitor|
      answer = visitor.request(
        "POST", "/uploads.js?attachment_id=1&filename=large.bin",
        Content::Body.new("application/octet-stream", LARGE),
        { "X-CSRF-Token" => visitor.last.find(/csrf-token" content="([^"]+)/) }
      )
      assert_equal 200, answer.status, answer.to_s
      answer.find(/(\d+\.\h{64})/)
    end
    step("the form again", "GET", "/projects/ashes/issues/new", 200)
    with_files = lambda do |visitor|
      multipart(FormFields.of(visitor.last, "/projects/ashes/issues", {
        "issue[subject]" => "Files", "attachments[1][token]" => tokens[visitors.index(visitor)],
        "attachments[1][filename]" => "large.bin",
        "attachments[2][file]" => ["麒麟.txt", "text/plain", "one\r\n--two\r\n"]
      }))
    end
    made = step("an issue with files", "POST", "/projects/ashes/issues", 302, content: with_files)
    issue = step("it", "GET", made.field("Location").delete_prefix("http://site.example"), 200,
                 body: /large\.bin.*麒麟\.txt/m)
    large = issue.find(%r{href="(/attachments/download/\d+/large\.bin)"})
    found = step("the large file", "GET", large, 200)
    assert_equal LARGE, found.body
    # Rack::ContentLength, which Redmine has, gives HEAD the length of no body.
    step("its head", "HEAD", large, 200, field: %w[Content-Length 0])
    step("its tag", "GET", large, 304, fields: { "If-None-Match" => found.field("ETag") })
    # Rack::ContentLength has read the file, so it is not handed back.
    step("no part", "GET", large, 200, fields: { "Range" => "bytes=1000000-1000255" })
    text = issue.find(%r{href="(/attachments/\d+)"[^>]*>麒麟\.txt})
    step("the text", "GET", text, 200, body: /--two/)
    step("all files", "GET", issue.find(%r{href="(/attachments/issues/\d+/download)"}), 200,
         body: /\APK/, field: %w[Content-Type application/zip])
    step("a file that is not there", "GET", "/attachments/download/999/none.txt", 404)
    assert_connections_kept
  end

  def test_the_interface_for_programs
    step("no password", "GET", "/users/current.json", 401)
    step("a password", "GET", "/users/current.json", 200, fields: BASIC, body: /"login":"admin"/)
    project = { "project" => { "name" => "Beeches", "identifier" => "beeches" } }
    step("a project", "POST", "/projects.json", 201, fields: BASIC, content: Content.json(project))
    step("the same again", "POST", "/projects.json", 422, fields: BASIC, body: /already been taken/,
         content: Content.json(project))
    issue = { "issue" => { "project_id" => "beeches", "subject" => "麒麟", "tracker_id" => 1 } }
    made = step("an issue", "POST", "/issues.json", 201, fields: BASIC, body: /麒麟/,
                content: Content.json(issue))
    path = "/issues/#{made.find(/"id":(\d+)/)}"
    step("in chunks", "PUT", "#{path}.json", 204, fields: BASIC,
         content: Content.chunked(Content.json("issue" => { "notes" => "ü" * 50_000 }), size: 5000))
    step("it", "GET", "#{path}.json?include=journals", 200, fields: BASIC, body: /ü{50000}/)
    step("as XML", "GET", "#{path}.xml", 200, fields: BASIC, body: %r{<subject>麒麟</subject>})
    xml = Content::Body.new("application/xml", "<issue><subject>Beech</subject></issue>")
    step("a change in XML", "PUT", "#{path}.xml", 204, fields: BASIC, content: xml)
    step("no JSON", "POST", "/issues.json", 400, fields: BASIC,
         content: Content::Body.new("application/json", "{"))
    step("all", "GET", "/issues.json?limit=1", 200, fields: BASIC, body: /"total_count":/)
    upload = Content.chunked(Content::Body.new("application/octet-stream", LARGE))
    step("a file", "POST", "/uploads.json?filename=a.bin", 201, fields: BASIC, content: upload)
    step("it goes", "DELETE", "#{path}.json", 204, fields: BASIC)
    step("it has gone", "GET", "#{path}.json", 404, fields: BASIC)
  end

  def test_static_files_and_failures
    ignored = Differences::OF_THE_FILE_SERVER.keys
    %w[/stylesheets/application.css /javascripts/application.js /favicon.ico /404.html
       /images/add.png].each do |name|
      step(name, "GET", name, 200, ignored: ignored)
      step("#{name}: its head", "HEAD", name, 200, ignored: ignored)
    end
    servers.first.wait_for_log(%r{"GET /stylesheets/application.css HTTP/1.1" 200 .* files })
    step("nothing there", "GET", "/nothing", 404)
    step("no project", "GET", "/projects/none", 404, body: /404/)
    step("a page for administrators", "GET", "/admin", 302)
    step("robots", "GET", "/robots.txt", 200, body: /User-agent/)
    step("an odd format", "GET", "/projects.odd", 406)
  end
end
