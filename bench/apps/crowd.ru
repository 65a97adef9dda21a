# Answers the crowd with a small body. /large is for slow readers: its body is larger than the
# buffer of a socket.
SMALL = "Hello World".freeze
LARGE = ("x" * (256 * 1024)).freeze

run(lambda do |env|
  body = env["PATH_INFO"] == "/large" ? LARGE : SMALL
  [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]
end)
