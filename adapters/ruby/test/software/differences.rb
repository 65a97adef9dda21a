# frozen_string_literal: true

require "time"

# What may differ between Kirin's response and that of Puma, each with its reason.
module Differences
  # Fields that belong to the server and not to the application.
  OF_THE_SERVER = {
    "date" => "two responses have two times, and Puma sends none",
    "connection" => "a field for this connection",
    "transfer-encoding" => "how a body is framed is a matter between this server and this client",
    "x-request-id" => "Rails makes a random one",
    "x-runtime" => "Rails says how long it took"
  }.freeze

  # Fields that only Kirin may send. If Puma sends one, Kirin must send the same.
  ADDED_BY_KIRIN = {
    "content-length" => "Kirin adds a length that it knows, where Puma sends chunks",
    "accept-ranges" => "Kirin answers ranges of the files that an application hands back",
    "etag" => "and conditions",
    "last-modified" => "and conditions"
  }.freeze

  # Fields in which Kirin as a file server differs from ActionDispatch::Static and Rack::Files.
  OF_THE_FILE_SERVER = {
    "etag" => "Rack::Files has none",
    "accept-ranges" => "Rack::Files does not send it",
    "cache-control" => "Kirin sends what the route says",
    "vary" => "Kirin compresses the file for clients that can read that",
    "content-type" => "Rack::Files sends no charset",
    "x-content-type-options" => "Rack::Protection adds this to the files of Sinatra",
    "set-cookie" => "and its sessions a cookie"
  }.freeze

  # Cookies with a value that is encrypted or signed, or the id of a session.
  RANDOM_COOKIE = /session|secret|signed|\ARedmine\z/.freeze

  NEAR_SECONDS = 30 * 24 * 60 * 60

  module_function

  # Returns the fields of a response that must be the same: lists of values by name.
  def comparable_fields(answer, ignored)
    fields = Hash.new { |hash, name| hash[name] = [] }
    answer.fields.each do |name, value|
      name = name.downcase
      next if OF_THE_SERVER.key?(name) || ignored.include?(name)

      fields[name] << comparable(name, value)
    end
    fields.transform_values(&:sort)
  end

  def comparable(name, value)
    case name
    when "set-cookie" then cookie(value)
    when "expires" then expiry(value)
    else value
    end
  end

  def cookie(line)
    pair, *attributes = line.split("; ")
    name, value = pair.split("=", 2)
    value = "RANDOM" if name.match?(RANDOM_COOKIE) && !value.to_s.empty?
    attributes.map! do |attribute|
      attribute.sub(/\Aexpires=(.*)/i) { "expires=#{expiry(Regexp.last_match(1))}" }
    end
    ["#{name}=#{value}", *attributes].join("; ")
  end

  # Returns a date near to now as hours from now, since two responses are from two times.
  def expiry(date)
    seconds = Time.httpdate(date) - Time.now
    seconds.abs <= NEAR_SECONDS ? "#{(seconds / 3600).round} hours" : date
  rescue ArgumentError
    date
  end
end
