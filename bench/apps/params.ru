# Reads the parameters of the request through Rack::Request, as nearly every application does. The
# response contains all of them. It is wrong if the server passes the request on wrongly.
require "rack"

run(lambda do |env|
  parameters = Rack::Request.new(env).params
  text = %w[a b c d e].map { |name| "#{name}=#{parameters[name]}" }.join(",")
  fields = { "content-type" => "text/plain" }
  fields["content-length"] = text.bytesize.to_s if ENV["BENCH_FRAMING"] == "length"
  [200, fields, [text]]
end)
