# frozen_string_literal: true

# The memo site.
#
#   kirin serve --config examples/memo-ruby/kirin.toml       behind Kirin
#   puma -t 1:1 examples/memo-ruby/config.ru                 alone
#
# In the environment:
#
#   MEMO_DATABASE  the SQLite file (default: data/memo.sqlite beside this file)
#   KIRIN_STORE    the address of the store, unix:PATH or HOST:PORT
#                  (default: none, pages are not stored)

require_relative "lib/memo/site"

here = File.dirname(File.expand_path(__FILE__))

# Behind Kirin the files are found before the application is asked. This is only for other servers.
use Rack::Static, root: "#{here}/public", cascade: true,
                  urls: %w[/memo.css /favicon.svg /robots.txt]

run Memo::Site.new(
  database: ENV["MEMO_DATABASE"] || "#{here}/data/memo.sqlite",
  schema: "#{here}/schema.sql",
  templates: "#{here}/templates",
  store: ENV["KIRIN_STORE"]
)
