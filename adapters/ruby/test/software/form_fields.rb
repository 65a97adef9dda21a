# frozen_string_literal: true

require "nokogiri"

# The fields of a form on a page, as a browser sends them.
module FormFields
  NOT_SENT = %w[submit button file image reset].freeze

  module_function

  # Returns pairs of the form with this action, with some changed or added. A value of nil removes.
  def of(page, action, changes)
    forms = Nokogiri::HTML5(page.text).css("form").select { |form| form["action"] == action }
    # A small form of the same action, such as a button to delete, may come first.
    form = forms.max_by { |found| found.css("input, select, textarea").size } or
      raise "no form with the action #{action} in\n#{page}"
    pairs = form.css("input, select, textarea").flat_map { |field| sent(field) }
    pairs.reject { |name, _| changes.key?(name) } + changes.compact.to_a
  end

  def sent(field)
    name = field["name"]
    return [] if name.nil? || field["disabled"]

    case field.name
    when "select" then options(field).map { |option| [name, option["value"] || option.text] }
    when "textarea" then [[name, field.text.delete_prefix("\n")]]
    else is_sent?(field) ? [[name, field["value"].to_s]] : []
    end
  end

  def is_sent?(field)
    return field["checked"] if %w[checkbox radio].include?(field["type"])

    !NOT_SENT.include?(field["type"])
  end

  def options(field)
    chosen = field.css("option[selected]")
    return chosen if field["multiple"] || chosen.any?

    field.css("option").first(1)
  end
end
