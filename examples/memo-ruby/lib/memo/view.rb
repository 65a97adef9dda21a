# frozen_string_literal: true

require "digest"
require_relative "template"

module Memo
  # The templates of a directory. All are compiled at once, before a server forks its workers.
  class View
    def initialize(directory)
      @files = Dir[File.join(directory, "*.erb")].sort
      raise ArgumentError, "no templates in #{directory}" if @files.empty?

      @template = Class.new(Template)
      @files.each { |file| @template.add(file) }
    end

    # Returns a page.
    def page(name, **variables)
      @template.new(variables).page(name)
    end

    # Returns a part of a page.
    def part(name, **variables)
      @template.new(variables).part(name)
    end

    # Returns a value that changes with the templates. Pages of old templates are then useless.
    def fingerprint
      @fingerprint ||= begin
        texts = @files.map { |file| File.binread(file) }
        Digest::SHA256.hexdigest(texts.join)[0, 16]
      end
    end
  end
end
