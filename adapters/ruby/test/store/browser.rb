# frozen_string_literal: true

require "rack"
require "stringio"

# A visitor of a Rack application, who keeps the cookies.
class Browser
  attr_reader :cookies, :set_cookie, :errors

  def initialize(app, cookies = {})
    @app = app
    @cookies = cookies
    @errors = StringIO.new
  end

  # Another visitor with the same cookies, as in another tab.
  def twin
    Browser.new(@app, @cookies.dup)
  end

  # Returns the body of the response. `env` is added to the environment.
  def get(path = "/", env = {})
    given = @cookies.map { |name, value| "#{name}=#{value}" }.join("; ")
    env = { "HTTP_COOKIE" => given, "rack.errors" => @errors, **env } unless given.empty?
    response = Rack::MockRequest.new(@app).get(path, { "rack.errors" => @errors, **env })
    @set_cookie = Array(response.headers["Set-Cookie"]).flat_map { |lines| lines.split("\n") }
    @set_cookie.each { |line| take(line) }
    response.body
  end

  private

  def take(line)
    name, value = line[/\A[^;]*/].split("=", 2)
    if line.match?(/expires=Thu, 01 Jan 1970/i)
      @cookies.delete(name)
    else
      @cookies[name] = value.to_s
    end
  end
end
