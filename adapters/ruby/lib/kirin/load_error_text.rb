# frozen_string_literal: true

require "rbconfig"
require_relative "interpreter"
require_relative "target_error"
require_relative "trace"

module Kirin
  # Describes why an application cannot be loaded, for people.
  module LoadErrorText
    # The most frames of the application's own files, characters of a line, and exceptions in a
    # chain that are shown.
    FRAMES = 4
    LINE_CHARACTERS = 500
    CHAIN = 3

    # The most bytes of a text. A line of the control channel has at most 16 KiB, and a backslash or
    # a line end takes two bytes there.
    TEXT_BYTES = 7 * 1024

    class << self
      # Returns the reason why an application cannot be loaded, in at most 7 KiB of UTF-8.
      def of(error)
        text = lines(error).map { |line| shortened(line) }.join("\n")
        text.byteslice(0, TEXT_BYTES).scrub("")
      rescue Exception
        # The exception, or a class in it, may be unable to describe itself.
        Trace.text(error)
      end

      private

      def lines(error)
        return Log.printable(error.message).split("\n") if error.is_a?(TargetError)

        lines = Trace.described(error) + places(error)
        cause = error.cause
        (CHAIN - 1).times do
          break if cause.nil?

          first, *others = Trace.described(cause)
          lines.push("caused by: #{first}", *others, *places(cause))
          cause = cause.cause
        end
        lines.concat(Interpreter.lines) if error.is_a?(::LoadError)
        lines
      end

      # Returns the last places in the application's own files, the innermost one first.
      def places(error)
        frames = (error.backtrace || []).reject { |frame| Trace.own?(frame) || internal?(frame) }
        own = frames.reject { |frame| installed?(frame) }
        (own.empty? ? frames : own).first(FRAMES).map { |frame| "  #{Log.printable(frame)}" }
      end

      def internal?(frame)
        frame.start_with?("<internal:")
      end

      # Returns whether a file came with Ruby or with a gem, and not with the application.
      def installed?(frame)
        installed = RbConfig::CONFIG.values_at("rubylibdir", "vendordir", "sitedir")
        installed += Gem.path if defined?(Gem)
        installed.compact.any? { |directory| frame.start_with?("#{directory}/") }
      end

      def shortened(line)
        line.size <= LINE_CHARACTERS ? line : "#{line[0, LINE_CHARACTERS]}…"
      end
    end
  end
end
