# frozen_string_literal: true

# `text` has the bytes of a file.
class Book < ActiveRecord::Base
  validates :title, presence: true, length: { maximum: 100 }
  validates :pages, numericality: { only_integer: true }
  # Pages about books come from the cache.
  after_commit { Rails.cache.delete("titles") }
end
