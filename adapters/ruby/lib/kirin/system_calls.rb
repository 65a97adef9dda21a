# frozen_string_literal: true

require "rbconfig"

module Kirin
  # System calls for which Ruby has no methods.
  #
  # Fiddle could make them, too. But it is a gem, and Bundler refuses to start an application whose
  # Gemfile.lock names another version of a gem that is loaded already. Kernel#syscall needs
  # nothing. Its numbers differ between architectures.
  module SystemCalls
    NUMBERS = {
      "x86_64" => {
        prctl: 157, sched_setscheduler: 144, timer_create: 222, timer_settime: 223
      },
      "aarch64" => {
        prctl: 167, sched_setscheduler: 119, timer_create: 107, timer_settime: 110
      }
    }.fetch(RbConfig::CONFIG["host_cpu"], {}).freeze
    # A process of 32 bits has other numbers.
    WORD_BYTES = [0].pack("J").bytesize
    private_constant :NUMBERS, :WORD_BYTES

    # Makes a system call. Returns whether the kernel has done what it says. Strings are memory that
    # the kernel reads or writes, and numbers are words.
    def self.succeeds?(name, *arguments)
      number = NUMBERS[name]
      return false if number.nil? || WORD_BYTES != 8

      # Ruby warns about this method if the application wants all warnings.
      verbose, $VERBOSE = $VERBOSE, nil
      begin
        Kernel.syscall(number, *arguments.map { |one| one.is_a?(String) ? address(one) : one })
        true
      rescue SystemCallError, NotImplementedError, NoMethodError
        false
      ensure
        $VERBOSE = verbose
      end
    end

    # Kernel#syscall itself takes no string with a NUL. The caller keeps the string.
    def self.address(string)
      [string].pack("P").unpack1("J")
    end
    private_class_method :address
  end
end
