# frozen_string_literal: true

module Kirin
  # The methods of IO that write texts by its `write`.
  module TextWriting
    # Writes a text as IO#<< does.
    def <<(text)
      write(text)
      self
    end

    # Writes texts as IO#print does.
    def print(*texts)
      write(*texts)
      nil
    end

    # Writes texts as IO#puts does.
    def puts(*texts)
      texts = [""] if texts.empty?
      texts.flatten.each do |text|
        text = text.to_s
        write(text.end_with?("\n") ? text : "#{text}\n")
      end
      nil
    end
  end
end
