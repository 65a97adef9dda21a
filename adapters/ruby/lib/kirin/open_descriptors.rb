# frozen_string_literal: true

module Kirin
  # Finds the descriptors that an application has opened while it was loaded.
  #
  # Forked processes have the same connections. One process may read what a database answers to
  # another. So an application must not open these before workers are forked: sockets, except those
  # of syslog, on which no data arrives; pipes from other processes; files that are open for reading
  # and writing, as databases are; SQLite databases that are only read.
  #
  # Logs, which are open for writing, may be shared. So may files that are only read, but all
  # processes have one common position.
  module OpenDescriptors
    # The start of an SQLite database.
    SQLITE = "SQLite format 3\0"

    # open(2): the bits of the flags that say how a file can be used.
    ACCESS_MODE = 3

    class << self
      # Returns the target of each open descriptor of this process by its number. Without /proc it
      # returns nothing.
      def opened
        Dir.children("/proc/self/fd").to_h do |number|
          [number.to_i, target(number)]
        end.compact
      rescue SystemCallError
        {}
      end

      # Returns a line about each descriptor that was opened after `before` was taken and that
      # processes cannot share after a fork.
      def not_to_be_shared(before)
        now = opened
        since = now.keys.sort.reject { |number| before[number] == now[number] }
        since.filter_map do |number|
          kind = kind(number, now)
          "descriptor #{number}, #{kind}" if kind
        end
      end

      private

      def target(number)
        File.readlink("/proc/self/fd/#{number}").b
      rescue SystemCallError
        # This was the directory itself.
        nil
      end

      def kind(number, targets)
        target = targets[number]
        return SocketKind.of(number) if target.start_with?("socket:")

        mode = mode(number)
        return if mode.nil?
        return pipe_kind(number, mode, targets) if target.start_with?("pipe:")
        return if !File.file?("/proc/self/fd/#{number}") || target.end_with?(" (deleted)")

        if mode & ACCESS_MODE == File::RDWR && (mode & File::APPEND).zero?
          "the file #{target}, which is opened for reading and writing"
        elsif mode & ACCESS_MODE == File::RDONLY && sqlite?(number)
          "the database #{target}"
        end
      end

      # With both ends here a pipe leads to no other process.
      def pipe_kind(number, mode, targets)
        return unless mode & ACCESS_MODE == File::RDONLY

        has_other_end = targets.any? do |other, target|
          other != number && target == targets[number] &&
            mode(other).to_i & ACCESS_MODE != File::RDONLY
        end
        "a pipe from another process" unless has_other_end
      end

      # Returns the flags of open(2), or nil if the descriptor has been closed.
      def mode(number)
        File.read("/proc/self/fdinfo/#{number}")[/^flags:\s*([0-7]+)/, 1]&.to_i(8)
      rescue SystemCallError
        nil
      end

      def sqlite?(number)
        File.binread("/proc/self/fd/#{number}", SQLITE.bytesize) == SQLITE
      rescue SystemCallError
        false
      end
    end

    # Describes a socket.
    module SocketKind
      # Returns what a socket is, or nil if it may be shared.
      def self.of(number)
        socket = Socket.for_fd(number)
        socket.autoclose = false
        own = address(socket) { socket.getsockname }
        peer = address(socket) { socket.getpeername }
        # No peer can answer on it: syslog.
        return if own == NAMELESS && socket.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_DGRAM
        return "a connection to #{peer}" if peer

        listens = socket.getsockopt(:SOCKET, :ACCEPTCONN).bool
        "#{listens ? "a listening socket" : "a socket"} at #{own}"
      rescue SystemCallError, SocketError
        "a socket"
      end

      NAMELESS = "a nameless unix socket"

      # Returns a name that can be in a log, or nil if there is none.
      def self.address(_socket)
        found = Addrinfo.new(yield)
        return "#{found.inspect_sockaddr}" if found.ip?
        return "an unknown address" unless found.unix?

        path = found.unix_path
        path.empty? ? NAMELESS : "unix:#{path.b.gsub(/[^ -~]/n, "?")}"
      rescue SystemCallError, SocketError, ArgumentError
        nil
      end
      private_class_method :address
    end
  end
end
