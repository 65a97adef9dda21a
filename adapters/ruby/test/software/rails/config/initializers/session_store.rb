# frozen_string_literal: true

options = { key: "_shelf_session", expire_after: 14.days }
if ENV["SHELF_STORE"] == "kirin"
  require "action_dispatch/session/kirin_store"
  Rails.application.config.session_store(:kirin_store, **options)
else
  Rails.application.config.session_store(:cookie_store, **options)
end
