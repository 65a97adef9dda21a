# frozen_string_literal: true

require_relative "programs"

# Rails with cache and sessions in the store of the Kirin that serves it.
class RailsTest < ProgramTest
  APPLICATION = <<~RUBY
    require "rails"
    require "action_controller/railtie"
    require "action_dispatch/session/kirin_store"

    class Memo < Rails::Application
      config.root = __dir__
      config.eager_load = true
      config.secret_key_base = "0123456789abcdef" * 8
      config.logger = Logger.new($stderr)
      config.log_level = :warn
      config.hosts.clear
      config.cache_store = :kirin_store
      config.session_store :kirin_store, key: "_memo_session", expire_after: 3600
      routes.append do
        get "/show", to: "pages#show"
        get "/sign_in", to: "pages#sign_in"
        get "/sign_out", to: "pages#sign_out"
        get "/flash", to: "pages#set_flash"
        get "/cached", to: "pages#cached"
        get "/count", to: "pages#count"
      end
    end

    class PagesController < ActionController::Base
      def show
        render plain: [session[:name], flash[:notice], Process.pid].inspect
      end

      def sign_in
        reset_session
        session[:name] = params[:name]
        head :ok
      end

      def sign_out
        reset_session
        head :ok
      end

      def set_flash
        redirect_to "/show", notice: "saved"
      end

      def cached
        render plain: Rails.cache.fetch("time") { { at: Time.now.to_f, pid: Process.pid } }.inspect
      end

      def count
        render plain: Rails.cache.increment("visits").to_s
      end
    end

    Memo.initialize!
    run Memo
  RUBY

  # `kirin serve` with a Rails application.
  class Site < Serving
    def initialize
      super
      File.write(path("config.ru"), APPLICATION)
      File.write(path("kirin.toml"), <<~TOML)
        [[listener]]
        address = "unix:http.sock"
        [store]
        memory = "16MB"
        memcached = ["unix:store"]
        session_cookie = "_memo_session"
        [[app]]
        name = "rails"
        load = "config.ru"
        workers = 2
        [[route]]
        path = "/"
        try = ["store", "app:rails"]
      TOML
    end
  end

  # A visitor of a site, who keeps the cookies.
  class Visitor
    attr_reader :cookie

    def initialize(site)
      @site = site
    end

    def get(target)
      fields = @cookie ? "Cookie: _memo_session=#{@cookie}\r\n" : ""
      status, head, body = @site.get(target, fields: fields)
      raise "#{target}: #{status}\n#{@site.log}" if status >= 400

      head.scan(/^set-cookie: _memo_session=([^;\r]*)/i) do |value,|
        @cookie = value.empty? ? nil : value
      end
      body
    end
  end

  def test_rails_keeps_cache_and_sessions_in_the_store
    Site.run do |site|
      check_sessions(site)
      check_flash(site)
      check_cache(site)
    end
  end

  def check_sessions(site)
    store = Kirin::Store.new(site.address)
    visitor = Visitor.new(site)
    assert_match(/\A\[nil, nil,/, visitor.get("/show"))
    assert_nil visitor.cookie
    visitor.get("/sign_in?name=Anna")
    id = visitor.cookie
    assert_equal "Anna", store.get(id)["name"]
    assert_match(/\A\["Anna", nil,/, visitor.get("/show"))
    store.set_page("/bar", "text/html; charset=UTF-8", '<!--# echo var="session.name" -->')
    assert_equal "Anna", visitor.get("/bar")
    visitor.get("/sign_in?name=Bob")
    refute_equal id, visitor.cookie
    assert_nil store.get(id)
    second = visitor.cookie
    visitor.get("/sign_out")
    assert_nil store.get(second)
    assert_nil visitor.cookie
  end

  def check_flash(site)
    visitor = Visitor.new(site)
    visitor.get("/flash")
    assert_match(/"saved"/, visitor.get("/show"))
    refute_match(/saved/, visitor.get("/show"))
  end

  def check_cache(site)
    cached = site.get("/cached").last
    assert_match(/pid/, cached)
    5.times { assert_equal cached, site.get("/cached").last }
    assert_equal %w[1 2 3], Array.new(3) { site.get("/count").last }
    store = Kirin::Store.new(site.address)
    store.purge(prefixes: "rails:")
    refute_equal cached, site.get("/cached").last
  end
end
