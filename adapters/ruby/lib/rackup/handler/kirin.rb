# frozen_string_literal: true

require "rackup/handler"
require "kirin/rack_handler"

module Rackup
  module Handler
    # `rackup -s kirin` and `rails server -u kirin`, with Rack 3.
    class Kirin < ::Kirin::RackHandler
    end

    register :kirin, Kirin
  end
end
