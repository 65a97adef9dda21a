# frozen_string_literal: true

module Kirin
  # A file that is no application. Its message is for the person who named the file.
  class TargetError < StandardError
  end
end
