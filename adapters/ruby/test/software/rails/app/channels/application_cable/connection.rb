# frozen_string_literal: true

module ApplicationCable
  # Only who has a session may connect.
  class Connection < ActionCable::Connection::Base
    identified_by :reader

    def connect
      self.reader = cookies.encrypted[:secret].to_h["name"] || reject_unauthorized_connection
    end
  end
end
