# frozen_string_literal: true

# What the tests of this directory share: the site, and a site with a store.

require "fileutils"
require "tmpdir"
# It makes `kirin/store` loadable, too.
require_relative "../../../adapters/ruby/test/store/programs"
require_relative "../lib/memo/site"

# The folder of the example.
EXAMPLE = File.expand_path("..", __dir__)

# Returns a site with a database and a store.
def site_with(database, store = nil)
  # The warning about an empty database is for people who start the site.
  verbose, $VERBOSE = $VERBOSE, nil
  Memo::Site.new(
    database: database, schema: "#{EXAMPLE}/schema.sql", templates: "#{EXAMPLE}/templates",
    store: store
  )
ensure
  $VERBOSE = verbose
end

# A site with a database in a temporary directory, and a store. `item` reads from it.
class SiteWithStore
  attr_reader :site

  def initialize
    @directory = Dir.mktmpdir("memo-ruby-")
    @store = Memcached.new
    @store.start
    @site = another
  end

  def close
    @site.database.close
    @site.store.client.close
    @store.stop
    FileUtils.rm_rf([@store.directory, @directory])
  end

  # Returns a site as another process with the same database and store has it.
  def another
    site_with("#{@directory}/memo.sqlite", @store.address)
  end

  # Returns an item of the store, or nil.
  def item(key)
    @site.store.client.get(key)
  end
end
