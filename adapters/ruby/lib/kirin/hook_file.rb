# frozen_string_literal: true

require_relative "hooks"

module Kirin
  # Loads `config/kirin.rb` beside an application: hooks without `Kirin.` before their names.
  module HookFile
    # The words that such a file knows.
    class Words
      Hooks::NAMES.each do |name|
        define_method(name) { |&block| Kirin.public_send(name, &block) }
      end
    end
    private_constant :Words

    # Evaluates the file of an application in `directory`, if there is one.
    def self.load(directory)
      path = File.join(directory, "config/kirin.rb")
      Words.new.instance_eval(File.read(path, encoding: "UTF-8"), path, 1) if File.file?(path)
    end
  end
end
