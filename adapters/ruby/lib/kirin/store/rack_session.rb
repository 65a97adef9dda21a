# frozen_string_literal: true

require "rack"
begin
  require "rack/session/abstract/id"
rescue LoadError
  raise LoadError, "Rack 3 has its sessions in a gem of their own: add rack-session to the Gemfile"
end
require_relative "session_persistence"

module Rack
  module Session
    # Sessions of Rack applications in Kirin's store.
    #
    #   require "kirin/store/rack_session"
    #   use Rack::Session::Kirin, key: "memo.session", expire_after: 14 * 24 * 3600, secure: true
    #
    # The cookie has only the id, so there is no `secret`. Members are what JSON can hold.
    # `request.session_options[:renew] = true` gives the session another id: do that when a visitor
    # signs in. `session.clear`, `session.destroy` and `session_options[:drop] = true` end it.
    class Kirin < Abstract::PersistedSecure
      prepend ::Kirin::Store::SessionPersistence
    end
  end
end
