# frozen_string_literal: true

require "securerandom"
require "sqlite3"

module Memo
  # The SQLite file, with one connection a process.
  #
  #   database.exclusively { database.execute("INSERT …", values) }
  class Database
    BUSY_TIMEOUT_MS = 5000

    attr_reader :path

    # A database at `path`, which need not exist yet.
    def initialize(path, schema_file)
      @path = File.expand_path(path)
      @schema_file = schema_file
    end

    # Returns the rows of a statement, as Hashes with columns by name.
    def execute(sql, values = [])
      connection.execute(sql, values)
    end

    # Returns the first row, or nil.
    def row(sql, values = [])
      execute(sql, values).first
    end

    # Returns the first column of the first row, or nil.
    def value(sql, values = [])
      row(sql, values)&.values&.first
    end

    # Adds a row. Returns its id, or nil if there is such a row already and the statement allows
    # that.
    def insert(sql, values)
      execute(sql, values)
      connection.last_insert_row_id unless connection.changes.zero?
    end

    # Closes the connection. The next statement opens another.
    #
    # A parent that is about to fork calls this. SQLite keeps one list of the locks that this
    # process has on a file, beside its connections. A child would inherit the list without the
    # locks, and its own connection would then work unlocked:
    # https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_
    def close
      @connection&.close
      @connection = nil
    end

    # Creates the tables in an empty file. Returns whether it did.
    def install_schema
      exclusively do
        is_empty = value("SELECT 1 FROM sqlite_master WHERE name = 'memo'").nil?
        make_tables if is_empty
        is_empty
      end
    end

    # Returns a setting that `install_schema` has written.
    def setting(name)
      value("SELECT value FROM setting WHERE name = ?", [name]) or
        raise KeyError, "no setting #{name} in #{@path}"
    end

    # Calls the block while no other process commits. All its reads see the newest state. Returns
    # what the block returns.
    def exclusively(&block)
      transaction("BEGIN IMMEDIATE", &block)
    end

    # Calls the block, whose reads all come from one state of the database. Returns what the block
    # returns.
    def snapshot(&block)
      transaction("BEGIN DEFERRED", &block)
    end

    private

    def connection
      @connection ||= open
    end

    def open
      connection = SQLite3::Database.new(@path, results_as_hash: true)
      connection.busy_timeout = BUSY_TIMEOUT_MS
      # Readers do not wait for the writer, nor the writer for them. With WAL, NORMAL loses at most
      # the last commits when the machine (not the process) dies, and never corrupts:
      # https://www.sqlite.org/pragma.html#pragma_synchronous
      connection.execute("PRAGMA journal_mode = WAL")
      connection.execute("PRAGMA synchronous = NORMAL")
      connection.execute("PRAGMA foreign_keys = ON")
      connection
    end

    def make_tables
      connection.execute_batch(File.read(@schema_file, encoding: "UTF-8"))
      %w[site_id csrf_key].each do |name|
        execute("INSERT INTO setting (name, value) VALUES (?, ?)", [name, SecureRandom.hex(18)])
      end
    end

    def transaction(start)
      execute(start)
      begin
        result = yield
        execute("COMMIT")
        result
      ensure
        # SQLite has ended the transaction itself after some errors.
        execute("ROLLBACK") if connection.transaction_active?
      end
    end
  end
end
