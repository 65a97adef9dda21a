# frozen_string_literal: true

require "rack/handler"
require "kirin/rack_handler"

module Rack
  module Handler
    # `rackup -s kirin` and `rails server -u kirin`, with Rack 2.
    class Kirin < ::Kirin::RackHandler
    end

    register "kirin", "Rack::Handler::Kirin"
  end
end
