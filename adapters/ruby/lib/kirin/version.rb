# frozen_string_literal: true

module Kirin
  VERSION = "0.1.0"
end
