# The smallest Rack application. BENCH_FRAMING=length adds a Content-Length, because some servers do
# not add one. The code that starts such a server sets it.
BODY = "Hello World".freeze
FIELDS = { "content-type" => "text/plain" }
FIELDS["content-length"] = BODY.bytesize.to_s if ENV["BENCH_FRAMING"] == "length"

run ->(_env) { [200, FIELDS.dup, [BODY]] }
