# frozen_string_literal: true

require_relative "log"

module Kirin
  # Texts about exceptions of an application, and about requests that take too long.
  module Trace
    # The most characters of a text in the log, frames of a stack, and exceptions of a chain of
    # causes.
    TEXT_CHARACTERS = 64 * 1024
    FRAMES = 100
    CHAIN = 4

    OWN_DIRECTORY = "#{__dir__}/"
    OWN_PROGRAM = "bin/kirin-worker"

    class << self
      # Returns the message and class of an exception, and its stack without the frames of Kirin.
      def text(error)
        lines = described(error) + places(error)
        cause = error.cause
        (CHAIN - 1).times do
          break if cause.nil?

          first, *others = described(cause)
          lines.push("caused by: #{first}", *others, *places(cause))
          cause = cause.cause
        end
        shortened(lines.join("\n"))
      rescue Exception
        # The exception, or a class in it, may be unable to describe itself.
        class_name(error)
      end

      # Returns the lines of the message of an exception. The first one has its class.
      def described(error)
        first, *others = message(error).split("\n")
        name = class_name(error)
        first = first.nil? || first == name ? name : "#{first} (#{name})"
        [first, *others.reject(&:empty?)]
      end

      # Returns whether a line of a stack is in the code of this adapter.
      def own?(frame)
        frame.start_with?(OWN_DIRECTORY) || frame.include?(OWN_PROGRAM)
      end

      # Logs why a request has failed.
      def log_failure(environment, error)
        Log.line("kirin: worker #{Process.pid}: #{request_line(environment)}: #{text(error)}")
      end

      # Logs the request that takes too long, and the stacks of all threads. `stack` is that of the
      # thread that serves. It can be called in the handler of a signal.
      def log_overdue(environment, stack)
        lines = ["kirin: worker #{Process.pid}: #{request_line(environment)}: took too long, here:"]
        lines.concat(frames(stack))
        (Thread.list - [Thread.main]).each do |thread|
          lines << "thread #{thread.name || thread.inspect}:"
          lines.concat(frames(thread.backtrace))
        end
        Log.line(shortened(lines.join("\n")))
      end

      # Returns the method and the target of a request.
      def request_line(environment)
        "#{environment["REQUEST_METHOD"]} #{environment["REQUEST_URI"]}"
      end

      private

      # The application may have written the method.
      def message(error)
        Log.printable(error.message)
      rescue Exception
        ""
      end

      def class_name(error)
        Module.instance_method(:to_s).bind_call(Kernel.instance_method(:class).bind_call(error))
      end

      def places(error)
        frames(error.backtrace)
      end

      def frames(stack)
        return [] if stack.nil?

        lines = stack.reject { |frame| own?(frame) }.map { |frame| "  #{frame}" }
        return lines if lines.size <= FRAMES

        left_out = lines.size - FRAMES
        [*lines.first(FRAMES / 2), "  … #{left_out} more …", *lines.last(FRAMES / 2)]
      end

      def shortened(text)
        return text if text.size <= TEXT_CHARACTERS

        half = TEXT_CHARACTERS / 2
        "#{text[0, half]}\n  …\n#{text[-half, half]}"
      end
    end
  end
end
