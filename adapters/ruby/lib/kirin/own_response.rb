# frozen_string_literal: true

module Kirin
  # The responses of a worker itself, of which the text is the reason phrase.
  module OwnResponse
    REASONS = { 500 => "Internal Server Error", 507 => "Insufficient Storage" }.freeze

    # A request id that can be in a field and in a page.
    ID = /\A[!-~]+\z/.freeze

    # Returns the fields and the text of a response. The visitor gets the id of the request, as in
    # Kirin's own responses, and the log has the reason beside it.
    def self.parts(status, id)
      fields = { "content-type" => "text/plain" }
      text = "#{REASONS.fetch(status)}\n"
      if id.is_a?(String) && id.match?(ID)
        fields["x-request-id"] = id
        text += "Request id: #{id}\n"
      end
      [fields, text]
    end
  end
end
