# frozen_string_literal: true

module Kirin
  class Store
    # The store is away, or it has refused a command. The message is one line.
    class Error < StandardError; end

    # The store has not answered within the time limit. It may have carried out the command.
    class NoAnswer < Error; end

    # A key, a value or an option that cannot be sent. Nothing was sent.
    class InvalidArgument < Error; end
  end
end
