# frozen_string_literal: true

# Kirin's adapter for Ruby: runs Rack applications as workers of the Kirin server.
#
# An application may use the hooks of kirin/hooks and Kirin::Store. Everything else belongs to the
# adapter.
module Kirin
end

require_relative "kirin/version"
require_relative "kirin/hooks"
