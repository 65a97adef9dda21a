# frozen_string_literal: true

require "rails"
require "active_record/railtie"
require "action_controller/railtie"
require "action_view/railtie"
require "action_cable/engine"

module Shelf
  class Application < Rails::Application
    config.load_defaults 6.1
    config.hosts = ["site.example"]
    config.secret_key_base = "0123456789abcdef" * 8
    config.time_zone = "UTC"
  end
end
