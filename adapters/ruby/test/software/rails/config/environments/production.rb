# frozen_string_literal: true

Rails.application.configure do
  config.cache_classes = true
  config.eager_load = true
  config.consider_all_requests_local = false
  config.action_controller.perform_caching = true
  # Below Puma, Rails sends the files in `public`. Kirin has a route for them.
  config.public_file_server.enabled = true
  config.logger = ActiveSupport::Logger.new($stdout)
  config.log_level = :info
  config.action_dispatch.x_sendfile_header = ENV["SHELF_SENDFILE"]
  config.cache_store = ENV["SHELF_STORE"] == "kirin" ? :kirin_store : [:file_store, "tmp/cache"]
  config.action_cable.allowed_request_origins = ["http://site.example"]
end
