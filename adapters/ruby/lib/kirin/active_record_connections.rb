# frozen_string_literal: true

module Kirin
  # The database connections that Rails has opened while it was loaded.
  module ActiveRecordConnections
    # From this version on, `clear_all_connections!` takes the role, and means one without it.
    WITH_ROLES = "7.1"

    # Closes them, because processes cannot share them. Each worker connects at its first query.
    def self.close
      return unless defined?(::ActiveRecord::Base)

      handler = ::ActiveRecord::Base.connection_handler
      if Gem::Version.new(::ActiveRecord::VERSION::STRING) >= Gem::Version.new(WITH_ROLES)
        handler.clear_all_connections!(:all)
      else
        handler.clear_all_connections!
      end
    end
  end
end
