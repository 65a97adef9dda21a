# frozen_string_literal: true

module Kirin
  # An app parent that starts again with exec(2), without the application.
  #
  # A loaded application cannot be unloaded, and its files do not run a second time. If workers
  # cannot share what it has opened, the app parent starts again. It keeps its process id, its
  # socket and its control channel. The workers then load the application.
  class Restart
    # Keeps how this process was started, before the application can change any of it.
    def initialize(arguments)
      @command = own_command(arguments)
      @directory = Dir.pwd
      @environment = ENV.to_h
      @umask = File.umask
    end

    # Starts this program again. Returns the reason if that is impossible. The arguments are
    # streams. All others are closed.
    def without_preloading(listener, control, log)
      reset_signals
      program, *arguments = @command
      exec(
        @environment, [program, program], *arguments,
        unsetenv_others: true, close_others: true, chdir: @directory, umask: @umask,
        0 => listener, 1 => control, 2 => log
      )
    rescue SystemCallError => error
      "#{@command.first}: cannot start again: #{error.message}"
    end

    private

    # An ignored signal stays ignored through exec(2).
    def reset_signals
      Signal.list.each_key do |name|
        Signal.trap(name, "SYSTEM_DEFAULT")
      rescue ArgumentError, SystemCallError
        # Ruby or the kernel reserves it.
        next
      end
    end

    # Returns the command of this process, with `--preload false`. The kernel has the options of the
    # interpreter, and in which order they were.
    def own_command(arguments)
      words = File.binread("/proc/self/cmdline").split("\0", -1)[0...-1]
      interpreter = words.take(words.size - arguments.size)
      # The word may be a name in PATH.
      interpreter[0] = RbConfig.ruby
      [*interpreter, "--preload", "false", *without_preload(arguments)]
    end

    def without_preload(arguments)
      options = arguments.take_while { |argument| argument != "--" }
      rest = arguments.drop(options.size)
      kept = []
      until options.empty?
        option = options.shift
        if option == "--preload"
          options.shift
        elsif !option.start_with?("--preload=")
          kept << option
        end
      end
      kept + rest
    end
  end
end
