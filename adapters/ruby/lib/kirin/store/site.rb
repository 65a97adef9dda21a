# frozen_string_literal: true

module Kirin
  # The site of the request that this code serves. Keys and tags in the store begin with its name.
  #
  # A worker sets it before each request:
  #
  #   Kirin::Site.of_process = env["KIRIN_SITE"]
  #
  # So threads that the application starts within a request have its site, too. docs/store.md
  # describes sites.
  module Site
    # A comma would divide a tag, and a control character could make it one of the store's own.
    NAME = /\A[A-Za-z0-9._-]*\z/.freeze

    class << self
      # The site of the only request in progress, or nil.
      attr_accessor :of_process

      # Returns the name of the site, or "" for the routes that belong to no site.
      def current
        Thread.current.thread_variable_get(:kirin_site) || of_process || ""
      end

      # Makes a block of code use the items of a site. "" means the items of no site. This is for
      # programs and for threads that outlive their request. Raises ArgumentError for a text that
      # cannot be the name of a site.
      def use(name)
        check(name)
        thread = Thread.current
        before = thread.thread_variable_get(:kirin_site)
        thread.thread_variable_set(:kirin_site, name)
        begin
          yield
        ensure
          thread.thread_variable_set(:kirin_site, before)
        end
      end

      # Raises ArgumentError for a text that cannot be the name of a site.
      def check(name)
        return if name.is_a?(String) && NAME.match?(name)

        raise ArgumentError,
              "the name of a site has letters, digits, '-', '_' and '.': #{name.inspect}"
      end
    end
  end
end
