# frozen_string_literal: true

# Makes the database with one book.
require_relative "../config/environment"

ActiveRecord::Schema.define do
  create_table :books do |table|
    table.string :title
    table.integer :pages
    table.string :file_name
    table.binary :text
    table.timestamps
  end
end
Book.create!(title: "Kirin", pages: 7, text: "one\ntwo\n", created_at: Time.at(1_700_000_000),
             updated_at: Time.at(1_700_000_000))
