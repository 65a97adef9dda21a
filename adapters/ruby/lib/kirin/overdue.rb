# frozen_string_literal: true

module Kirin
  # Raised in an application whose request takes too long. The client has got 504 already.
  class Overdue < Exception
  end
end
