# frozen_string_literal: true

require_relative "log"

module Kirin
  # The standard streams of the app parent and its workers: what an application prints goes to the
  # log, at once, and never makes it wait or fail.
  module StandardStreams
    # Replaces how an IO writes. All of its methods that print call this one.
    module Losing
      # Writes texts at once, or loses them. Returns the number of their bytes.
      def write(*texts)
        bytes = texts.size == 1 ? texts[0].to_s.b : texts.map { |text| text.to_s.b }.join
        Log.write_or_lose(self, bytes)
        bytes.bytesize
      end
    end

    # Moves the channels of the front out of the application's reach. Returns the listener and the
    # control channel. Ends this process if they are not there.
    def self.take_channels
      unless $stdin.stat.socket?
        abort("kirin-worker: STDIN is not a socket; kirin starts this program")
      end
      listener = IO.for_fd(Log.above_standard($stdin), "r+")
      control = IO.for_fd(Log.above_standard($stdout), "w")
      control.sync = true
      $stdin.reopen(File::NULL)
      Log.never_wait
      Log.keep
      $stdout.reopen($stderr)
      [$stdout, $stderr].each do |stream|
        stream.sync = true
        stream.extend(Losing)
      end
      [listener, control]
    rescue SystemCallError => error
      abort("kirin-worker: STDIN and STDOUT: #{error.message}")
    end
  end
end
