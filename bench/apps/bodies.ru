# Large bodies: a GET is answered with a megabyte, a POST with the length of its body.
LARGE = ((0..249).to_a.pack("C*") * 4000).freeze
PIECE_BYTES = 64 * 1024

run(lambda do |env|
  if env["REQUEST_METHOD"] == "GET"
    fields = { "content-type" => "application/octet-stream", "content-length" => LARGE.bytesize.to_s }
    next [200, fields, [LARGE]]
  end
  length = 0
  while (piece = env["rack.input"].read(PIECE_BYTES))
    length += piece.bytesize
  end
  text = length.to_s
  [200, { "content-type" => "text/plain", "content-length" => text.bytesize.to_s }, [text]]
end)
