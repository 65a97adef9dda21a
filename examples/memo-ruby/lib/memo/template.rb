# frozen_string_literal: true

require "erubi"
require_relative "html"
require_relative "response"

module Memo
  # What the code in a template sees: the variables as `@name`, and these methods.
  class Template
    # Adds the template of a file. It becomes a method, so it is compiled only once.
    def self.add(file)
      source = Erubi::Engine.new(
        File.read(file, encoding: "UTF-8"), escape: true, escapefunc: "Html.of", bufval: "+''"
      ).src
      class_eval("def #{method_of(File.basename(file, '.erb'))}\n#{source}\nend", file, 0)
    end

    # Returns the name of a template's method.
    def self.method_of(name)
      "render_#{name}"
    end

    def initialize(variables)
      variables.each { |name, value| instance_variable_set("@#{name}", value) }
    end

    # Returns a template with the same variables.
    def part(name)
      Html.new(public_send(Template.method_of(name)))
    end

    # Returns a template inside the layout. It says its title as `@title`.
    def page(name)
      @main = part(name)
      part("layout")
    end

    private

    def content_security_policy
      Response::CONTENT_SECURITY_POLICY
    end

    def minute(seconds)
      Time.at(seconds).utc.strftime("%Y-%m-%d %H:%M")
    end

    def iso(seconds)
      Time.at(seconds).utc.strftime("%Y-%m-%dT%H:%M:%SZ")
    end
  end
end
