# frozen_string_literal: true

require_relative "connection"
require_relative "error"

module Kirin
  class Store
    # What is sent to a memcached, and what is read. Each method is for the block of
    # `Endpoint#converse`.
    #
    # A method reads every reply to what it sends, or raises `Error`. After that the connection is
    # closed, because it may have other bytes.
    module Conversations
      # The most commands that are sent before their replies are read. The replies fit into the
      # buffers of a socket.
      COMMANDS_AT_ONCE = 100

      # The most bytes of commands that are gathered before they are sent.
      BYTES_AT_ONCE = 1024 * 1024

      NOT_DONE = %w[NOT_FOUND NOT_STORED EXISTS NF NS EX].freeze
      PRINTABLE = /\A[ -~]{1,200}\z/n.freeze
      VALUE = /\AVALUE (\S+) ([0-9]{1,10}) ([0-9]{1,10})(?: ([0-9]{1,20}))?\z/n.freeze
      META_VALUE = /\AVA ([0-9]{1,10}) f([0-9]{1,10})((?: [A-Z])*)\z/n.freeze
      NUMBER = /\A[0-9]{1,20}\z/n.freeze

      module_function

      # Returns true for the expected reply, and false if the store could do nothing.
      def carry_out(connection, command, expected)
        connection.write(command)
        verdict(connection, expected)
      end

      # Returns the number after an `incr` or `decr`, or nil if there is no item.
      def count(connection, command)
        connection.write(command)
        line = connection.line
        return line.to_i if NUMBER.match?(line)

        raise refused(line) unless line == "NOT_FOUND"
      end

      # Returns [name, flags, number for cas, bytes] of each item that was found.
      def retrieve(connection, commands)
        found = []
        commands.each do |command|
          connection.write(command)
          until (line = connection.line) == "END"
            parts = VALUE.match(line) or raise refused(line)
            data = connection.block(parts[3].to_i)
            found << [parts[1], parts[2].to_i, parts[4]&.to_i, data]
          end
        end
        found
      end

      # Returns [bytes, flags, whether this client has won the right to renew], or nil.
      def meta_retrieve(connection, command)
        connection.write(command)
        line = connection.line
        return if line == "EN"

        parts = META_VALUE.match(line) or raise refused(line)
        [connection.block(parts[1].to_i), parts[2].to_i, parts[3].include?("W")]
      end

      # Stores many items: pairs of a command and its expected reply. Raises the first refusal after
      # all are sent. The items that are not refused are stored.
      def store_many(connection, commands)
        first = nil
        batches(commands).each do |batch|
          connection.write(batch.map(&:first).join)
          batch.each do |_, expected|
            line = connection.line
            next if line == expected

            # The store has read the value that it refuses, so the other replies follow.
            raise refused(line) unless line.start_with?("SERVER_ERROR")

            first ||= refused(line)
          end
        end
        first
      end

      # Sends many commands before it waits for the first reply. Returns for how many purges, each a
      # list of commands, there was an item.
      def purge_all(connection, purges)
        purges.each_slice(COMMANDS_AT_ONCE).sum do |some|
          connection.write(some.flatten.join)
          some.count { |commands| commands.map { verdict(connection, "HD") }.any? }
        end
      end

      def verdict(connection, expected)
        line = connection.line
        return true if line == expected
        return false if NOT_DONE.include?(line)

        # The connection may have other bytes after an error line, for example a part of the value.
        raise refused(line)
      end

      # Returns the failure for a line that is no expected reply.
      def refused(line)
        Error.new(PRINTABLE.match?(line) ? line.encode("UTF-8") : Connection::NO_REPLY)
      end

      def batches(commands)
        size = 0
        commands.each_slice(COMMANDS_AT_ONCE).flat_map do |some|
          some.slice_when do |command, _|
            size += command.first.bytesize
            is_full = size >= BYTES_AT_ONCE
            size = 0 if is_full
            is_full
          end.to_a
        end
      end
    end
  end
end
