# frozen_string_literal: true

require "action_dispatch"
require "action_dispatch/middleware/session/abstract_store"
require "kirin/store/session_persistence"

module ActionDispatch
  module Session
    # Sessions of Rails in Kirin's store.
    #
    #   # config/initializers/session_store.rb
    #   require "action_dispatch/session/kirin_store"
    #   Rails.application.config.session_store :kirin_store, key: "_memo_session"
    #
    # The options are those of Rails' session stores, and `ttl` and `store` of
    # `Kirin::Store::SessionPersistence`. `reset_session` ends the session.
    class KirinStore < AbstractSecureStore
      prepend ::Kirin::Store::SessionPersistence
    end
  end
end
