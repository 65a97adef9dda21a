# frozen_string_literal: true

# The notes, with the middleware that such applications have, and once more below a mount.
require_relative "notes"
require "rack/deflater"

use Rack::Deflater, include: %w[text/html], sync: false
map("/mounted") { run Notes }
map("/members") do
  use(Rack::Auth::Basic, "members") { |name, password| name == "ann" && password == "oak" }
  run Notes
end
map("/") { run Notes }
