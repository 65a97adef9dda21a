# frozen_string_literal: true

require "socket"
require_relative "error"

module Kirin
  class Store
    # Addresses of a store: `unix:PATH`, `/PATH` and `HOST:PORT`.
    #
    # A relative PATH is relative to the working directory of the moment, as for Kirin itself.
    module Address
      # The longest path of a unix socket (unix(7)), without the NUL at its end.
      SOCKET_PATH_BYTES = 107

      HOST_AND_PORT = /\A\[?(.+?)\]?:([0-9]{1,5})\z/.freeze

      # Returns [family, address for connect] for each meaning of an address. Raises `Error` if it
      # has none. A name is resolved at each call.
      def self.candidates(address)
        path = address.delete_prefix("unix:")
        if path.start_with?("/") || (!path.empty? && path != address)
          raise Error, "the path of the socket is too long" if path.bytesize > SOCKET_PATH_BYTES

          return [[Socket::AF_UNIX, Socket.sockaddr_un(path)]]
        end
        found = HOST_AND_PORT.match(address)
        raise Error, "the address is not HOST:PORT or unix:PATH" unless found

        resolve(found[1], found[2])
      end

      def self.resolve(host, port)
        Addrinfo.getaddrinfo(host, port, nil, :STREAM).map do |info|
          [info.afamily, info.to_sockaddr]
        end
      rescue SocketError, ArgumentError => e
        raise Error, e.message.lines.first.to_s.chomp
      end
      private_class_method :resolve
    end
  end
end
