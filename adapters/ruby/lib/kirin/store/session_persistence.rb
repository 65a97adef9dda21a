# frozen_string_literal: true

require_relative "touch_times"
require_relative "visitor_session"

module Kirin
  class Store
    # Keeps the sessions of Rack and of Rails in Kirin's store. It is for classes that inherit from
    # Rack::Session::Abstract::PersistedSecure, in Rack 2 or in the gem rack-session.
    #
    # The options are those of Rack, and these:
    #
    # `store`: a `Kirin::Store`. The default is `Kirin::Store.default`.
    # `ttl`: for how many seconds a session lives after it was last used. The default is
    # `expire_after`, and 14 days without that.
    module SessionPersistence
      DEFAULT_SECONDS = 14 * 24 * 60 * 60

      VISITOR = "kirin.visitor_session"

      # The attributes of a cookie that options of a session are.
      ATTRIBUTES = %i[path domain tld_length secure httponly partitioned max_age].freeze

      def initialize(app, options = {})
        if options[:cookie_only] == false
          # A link of an attacker could sign a visitor in.
          raise ArgumentError, "sessions of Kirin are only in cookies: leave out cookie_only"
        end

        super
        @store = @default_options.delete(:store) || Store.default
        @ttl = @default_options.delete(:ttl)
        @touch_times = TouchTimes.new
      end

      # Writes the session if needed, and sends a cookie if the client needs new information.
      def commit_session(req, res)
        session = req.get_header(Rack::RACK_SESSION)
        options = session.options
        visitor = visitor_of(req)
        return if options[:skip]
        return drop(req, res, visitor, options) if options[:drop]
        return unless options[:renew] || loaded_session?(session) || visitor.removed?
        return unless security_matches?(req, options)

        session.send(:load!) unless loaded_session?(session)
        visitor.load
        return if visitor.lost?

        visitor.content = session.to_hash
        write(req, res, visitor, options)
      end

      def generate_sid(*)
        Rack::Session::SessionId.new(VisitorSession.new_id)
      end

      private

      # Returns [id, members]. The id from the client counts only if the store has the session.
      def find_session(req, _sid)
        visitor = visitor_of(req)
        visitor.load
        [Rack::Session::SessionId.new(visitor.id), visitor.content]
      end

      # Ends the session. The application may put data into another one, whose id is returned.
      def delete_session(req, _sid, _options)
        visitor = visitor_of(req)
        visitor.remove
        Rack::Session::SessionId.new(visitor.id)
      end

      def extract_session_id(req)
        id = visitor_of(req).cookie
        id && Rack::Session::SessionId.new(id)
      end

      def visitor_of(req)
        req.get_header(VISITOR) || begin
          visitor = VisitorSession.new(@store, req.cookies[@key]) do |line|
            req.get_header(Rack::RACK_ERRORS)&.puts("kirin: #{line}")
          end
          req.set_header(VISITOR, visitor)
        end
      end

      def write(req, res, visitor, options)
        ttl = ttl(options)
        if !visitor.stored?
          if visitor.content.empty?
            delete_cookie(req, res, options) if visitor.removed?
            return
          end
          needs_cookie = visitor.create(ttl) == :stored && !options[:defer]
        elsif visitor.content.empty? && visitor.changed?
          # An application signs a visitor out by clearing the session.
          return drop(req, res, visitor, options)
        elsif options[:renew]
          needs_cookie = visitor.move(ttl) == :stored
        else
          needs_cookie = prolonged?(visitor, ttl) && !options[:defer] && life(options)
        end
        send_cookie(req, res, visitor.id, options) if needs_cookie
      end

      # Writes or touches an existing session. Returns whether its life has started again.
      def prolonged?(visitor, ttl)
        return visitor.update(ttl) == :stored if visitor.changed?

        visitor.touch(ttl, @touch_times)
      end

      def drop(req, res, visitor, options)
        visitor.remove
        delete_cookie(req, res, options)
      end

      # Seconds after which the cookie ends, or nil if it ends with the browser.
      def life(options)
        options[:max_age] || options[:expire_after]
      end

      def ttl(options)
        (@ttl || life(options) || DEFAULT_SECONDS).to_f
      end

      def send_cookie(req, res, value, options)
        cookie = { value: value, same_site: same_site_of(req, res) }
        cookie[:expires] = Time.now + life(options) if life(options)
        set_cookie(req, res, cookie_with(cookie, options))
      end

      def delete_cookie(req, res, options)
        return unless req.cookies.key?(@key)

        cookie = { value: "", same_site: same_site_of(req, res), expires: Time.at(0), max_age: 0 }
        set_cookie(req, res, cookie_with(cookie, options))
      end

      def cookie_with(cookie, options)
        ATTRIBUTES.each { |name| cookie[name] ||= options[name] unless options[name].nil? }
        cookie
      end

      def same_site_of(req, res)
        @same_site.respond_to?(:call) ? @same_site.call(req, res) : @same_site
      end
    end
  end
end
