# frozen_string_literal: true

require "json"
require "uri"

# Contents of requests, as a browser or a program sends them.
module Content
  BOUNDARY = "----the-boundary-of-these-tests"

  # `parts` are the chunks of a body that is sent without a length, or nil.
  Body = Struct.new(:media_type, :bytes, :parts)

  module_function

  # A form without files: a Hash, or an Array of pairs.
  def form(pairs)
    Body.new("application/x-www-form-urlencoded", URI.encode_www_form(pairs))
  end

  # A form with files. A value is a text, or an array of file name, media type and bytes.
  def multipart(pairs)
    parts = pairs.map { |name, value| part(name, value) }
    Body.new("multipart/form-data; boundary=#{BOUNDARY}", "#{parts.join}--#{BOUNDARY}--\r\n".b)
  end

  def json(value)
    Body.new("application/json", JSON.generate(value))
  end

  # Another content, sent in chunks of `size` bytes.
  def chunked(content, size: 70_000)
    bytes = content.bytes.b
    parts = (0...bytes.bytesize).step(size).map { |at| bytes.byteslice(at, size) }
    Body.new(content.media_type, bytes, parts)
  end

  def part(name, value)
    head = "--#{BOUNDARY}\r\nContent-Disposition: form-data; name=\"#{name}\"".b
    return "#{head}\r\n\r\n".b << value.b << "\r\n" if value.is_a?(String)

    file, media_type, bytes = value
    head << "; filename=\"".b << file.b << "\"\r\nContent-Type: #{media_type}\r\n\r\n"
    head << bytes.b << "\r\n"
  end
end
